//! A disk without space under the SQLite file, then with space again.
