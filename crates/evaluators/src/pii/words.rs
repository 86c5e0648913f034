//! Label words, which say what the number beside them is. The evaluator finds the marks of secrets in the same pass.

use std::{cell::OnceCell, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind};

use super::secrets;

/// The kind of number that a word labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Label {
    /// A telephone number.
    Phone,
    /// A payment card.
    Card,
    /// An IP address.
    Ip,
    /// A person's number of any state.
    National,
    SocialSecurity,
    NationalInsurance,
    HealthService,
    Aadhaar,
    IndianPan,
    Cpf,
    Cnpj,
    ChineseId,
    SteuerId,
    Nir,
    Dni,
    CodiceFiscale,
    Curp,
    MyNumber,
    SocialInsurance,
    TaxFile,
    ResidentRegistration,
    Pesel,
    Bsn,
    SouthAfrican,
    Tckn,
    Nordic,
    Passport,
    /// Another number, such as an order, a book or a version. A number with such a label needs more than its
    /// shape to be personal.
    Other,
}

use Label::{
    Aadhaar, Bsn, Card, ChineseId, Cnpj, CodiceFiscale, Cpf, Curp, Dni, HealthService, IndianPan, Ip,
    MyNumber, National, NationalInsurance, Nir, Nordic, Other, Passport, Pesel, Phone, ResidentRegistration,
    SocialInsurance, SocialSecurity, SouthAfrican, SteuerId, TaxFile, Tckn,
};

/// Label words separated by commas, in lower case; matched at word boundaries and without regard to ASCII
/// case.
const LABEL_WORDS: &[(Label, &str)] = &[
    (
        Phone,
        "phone, telephone, tel, mobile, cell, cellphone, call, sms, whatsapp, fax, hotline, dial, \
         ring, text me, text us, texted, reach me, reach her, reach him, reached, telefon, \
         telefonnummer, telefone, teléfono, telefono, téléphone, portable, handy, handynummer, mobil, \
         mobilnummer, rufnummer, móvil, movil, cel, celular, cellulare, appelez, appeler, llame, llámame, \
         llamar, ligue, chiama, ruf, anrufen, тел, телефон, звоните, 电话, 電話, 手机, 手機, 携帯, 전화, 휴대폰, \
         연락처, هاتف, جوال, फ़ोन, फोन, मोबाइल, điện thoại, puhelin, puh, tlf, telp, hp, msisdn, \
         callback, contact number, answering at, not answering, messages to, messages from, \
         texts to, voicemail, numer telefonu, telefoonnummer, mobiel, cep telefonu, signal, \
         viber, extension",
    ),
    (
        Card,
        "card, credit card, debit card, cardnumber, visa, mastercard, amex, american express, \
         maestro, cc, ccn, karte, kreditkarte, kartennummer, tarjeta, cartão, carte bancaire, carte \
         de crédit, carta di credito, карта, карты, 卡号, カード, unionpay, discover, jcb, kreditkort, \
         karta",
    ),
    (
        Ip,
        "ip, ipv4, ipv6, ip address, ip addr, client_ip, remote_addr, x-forwarded-for, host, server, \
         logged in from, login from, sign-in from, connected from, connection from, request from, \
         visitor, ssh, ping, whois, dns, adresse ip, dirección ip, endereço ip, ip-adresse, ssh from",
    ),
    (
        National,
        "national id, national identity, national identification, identity number, identity card, id \
         card, id number, identification number, personal number, personal id, tax id, tax number, \
         taxpayer, personnummer, fødselsnummer, fodselsnummer, cpr, henkilötunnus, hetu, \
         rijksregisternummer, numéro national, ahv, avs, nric, fin, hkid, rut, cuil, cuit, cnp, pps, \
         ppsn, nif, teudat zehut, rodné číslo, oib, jmbg, egn, citizen id, government id, id no, \
         id-nummer, documento, identité, ausweisnummer, personalausweis, national-id, nationalid, \
         national_id",
    ),
    (
        SocialSecurity,
        "ssn, social security, social-security, social_security, socialsecurity, social, soc sec, \
         itin, ss#, seguro social",
    ),
    (NationalInsurance, "nino, national insurance, ni number, ni no, n.i. number, insurance number"),
    (HealthService, "nhs, nhs number"),
    (Aadhaar, "aadhaar, aadhar, uidai, uid number, आधार"),
    (IndianPan, "pan, pan card, pan number, permanent account number"),
    (Cpf, "cpf, cadastro de pessoas"),
    (Cnpj, "cnpj"),
    (ChineseId, "身份证, 身份证号, resident identity, chinese id, shenfenzheng, 公民身份"),
    (
        SteuerId,
        "steuer-id, steuerid, steuer id, steueridentifikationsnummer, steuerliche \
         identifikationsnummer, identifikationsnummer, idnr, steuernummer, tin",
    ),
    (Nir, "nir, insee, sécurité sociale, securite sociale, numéro de sécu, carte vitale"),
    (Dni, "dni, nie, nif"),
    (CodiceFiscale, "codice fiscale, cod. fisc, c.f."),
    (Curp, "curp"),
    (MyNumber, "my number, mynumber, マイナンバー, 個人番号, kojin bango"),
    (SocialInsurance, "sin, social insurance, nas, assurance sociale"),
    (TaxFile, "tfn, tax file"),
    (ResidentRegistration, "rrn, resident registration, 주민등록번호, 주민번호"),
    (Pesel, "pesel"),
    (Bsn, "bsn, burgerservicenummer, sofinummer, burger service"),
    (SouthAfrican, "south african id, sa id, rsa id, id number, identity number, said"),
    (Tckn, "tckn, t.c. kimlik, tc kimlik, kimlik no, kimlik numarası, tc no, kimlik numaram"),
    (
        Nordic,
        "personnummer, fødselsnummer, fodselsnummer, cpr, cpr-nummer, henkilötunnus, hetu, kennitala, \
         isikukood, personal code, asmens kodas",
    ),
    (
        Passport,
        "passport, reisepass, reisepassnummer, passeport, pasaporte, passaporte, passaporto, паспорт, \
         护照, パスポート",
    ),
    (
        Other,
        "order, order no, order number, order id, invoice, ticket, tracking, ref, reference, sku, \
         isbn, isbn-10, isbn-13, issn, imei, imsi, iccid, serial, serial number, part, part number, \
         model, version, build, commit, hash, sha, sha1, sha256, md5, uuid, guid, asin, ean, upc, \
         gtin, doi, arxiv, case, po, batch, lot, article, item, product, timestamp, epoch, unix time, \
         row, record, transaction, txn, trace, request id, session, session id, job, run id, pid, \
         port, zip, postal, postcode, coordinates, lat, lon, latitude, longitude, gps, population, \
         revenue, price, total, amount, pmid, docket, flight, chapter, section, §, patent, \
         bestellnummer, bestellung, rechnung, rechnungsnummer, auftrag, auftragsnummer, \
         sendungsnummer, artikelnummer, commande, facture, colis, suivi, pedido, factura, fatura, \
         ordine, fattura, spedizione, заказ, заказа, 订单, 订单号, 注文, 注文番号, 주문, firmware, release, user \
         id, customer id, customer number, account id, message id, post id, tweet id, snowflake, \
         checksum, crc, barcode, bytes, vin, meter, policy, claim, shipment, parcel, waybill, awb, \
         confirmation, booking, reservation, pnr, receipt, zamówienie, zamówienia, bestelling, \
         factuur, ordernummer, kvittering, beställning, sipariş, fatura no, nct, catalog, catalogue, \
         cas, ec number, dewey, oclc, lccn, issue, pull request, bug, error code, exit code, seed, \
         nonce, block, channel, ratio, score, pi, salary, budget",
    ),
];

/// A label word and its position.
#[derive(Clone, Copy, Debug)]
struct Word {
    start: u32,
    end: u32,
    label: Label,
}

/// The label words and marks of a text.
#[derive(Default)]
pub(super) struct Words<'a> {
    text: &'a str,
    /// The label words, in order of their ends. They are searched when the first number asks for its labels.
    words: OnceCell<Vec<Word>>,
    /// Prefixes and names of secrets: the number in [`secrets::all_marks`] and the byte of the start.
    pub(super) marks: Vec<(usize, usize)>,
}

struct Automaton {
    search: AhoCorasick,
    /// The label of each pattern; the remaining patterns are marks.
    labels: Vec<Label>,
}

static LABEL_AUTOMATON: LazyLock<Option<Automaton>> = LazyLock::new(|| {
    let words =
        || LABEL_WORDS.iter().flat_map(|(label, words)| words.split(',').map(|it| (*label, it.trim())));
    let labels = words().map(|it| it.0).collect();
    let patterns = words().map(|it| it.1).chain(secrets::all_marks());
    let search = AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        // The DFA has a state per byte: it takes a few hundred kilobytes once, and one table look-up per byte
        // of text.
        .kind(Some(AhoCorasickKind::DFA))
        .build(patterns)
        .ok()?;
    Some(Automaton { search, labels })
});

/// Maximum distance of a label word before its number, in bytes.
const MAX_DISTANCE_BEFORE: usize = 64;
/// Maximum distance of a label word after its number, in bytes.
const MAX_DISTANCE_AFTER: usize = 28;
/// Maximum distance of a label word for an impersonal number, in bytes.
const MAX_DISTANCE_IMPERSONAL: usize = 32;

impl<'a> Words<'a> {
    /// Finds the label words and marks of a text.
    pub(super) fn of(text: &'a str) -> Self {
        let mut marks = Vec::new();
        let words = search(text, |mark, start| marks.push((mark, start)));
        Self { text, words: OnceCell::from(words), marks }
    }

    /// Finds the label words of a text when a number asks for them, and no marks.
    pub(super) fn on_demand(text: &'a str) -> Self {
        Self { text, ..Self::default() }
    }

    /// Returns no label words and no marks.
    pub(super) fn without_labels() -> Self {
        Self { words: OnceCell::from(Vec::new()), ..Self::default() }
    }

    /// Returns whether labels were looked up, and one of them is impersonal.
    pub(super) fn found_impersonal(&self) -> bool {
        self.words.get().is_some_and(|it| it.iter().any(|it| it.label == Other))
    }

    /// Returns the labels around these bytes.
    pub(super) fn around(&self, start: usize, end: usize) -> NearbyLabels {
        let mut around = NearbyLabels::default();
        let words = self.words.get_or_init(|| search(self.text, |_, _| {}));
        let after = words.partition_point(|it| it.end as usize <= start);
        let mut nearest = 0_usize;
        for word in words[..after].iter().rev() {
            let distance = start - word.end as usize;
            if distance > MAX_DISTANCE_BEFORE {
                break;
            }
            if around.near == 0 || distance == nearest {
                nearest = distance;
                if word.label != Other || distance <= MAX_DISTANCE_IMPERSONAL {
                    around.near |= bit(word.label);
                }
            }
            around.earlier |= bit(word.label);
        }
        for word in &words[after..] {
            if word.start as usize >= end + MAX_DISTANCE_AFTER {
                break;
            }
            // A label of the next number ("1234, phone 5678") is followed by a colon or that number. A word
            // after this number counts only in brackets or as a statement about this number.
            if word.start as usize >= end && word.label != Other {
                around.later |= bit(word.label);
            }
        }
        around
    }
}

/// Returns the label words of a text in order of their ends, and passes the number and the start of each mark.
fn search(text: &str, mut mark: impl FnMut(usize, usize)) -> Vec<Word> {
    let mut words = Vec::new();
    let Some(automaton) = &*LABEL_AUTOMATON else { return words };
    for hit in automaton.search.find_overlapping_iter(text) {
        let pattern = hit.pattern().as_usize();
        match automaton.labels.get(pattern) {
            Some(label) => {
                if whole(text, hit.start(), hit.end()) {
                    let place = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
                    words.push(Word { start: place(hit.start()), end: place(hit.end()), label: *label });
                }
            }
            None => mark(pattern - automaton.labels.len(), hit.start()),
        }
    }
    words
}

/// The labels around a number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NearbyLabels {
    /// The nearest label before the number.
    near: u32,
    /// All labels before the number.
    earlier: u32,
    /// All labels after the number.
    later: u32,
}

impl NearbyLabels {
    /// Returns whether a word gives the number this label and no nearer word contradicts it.
    pub(super) fn has_label(self, label: Label) -> bool {
        if self.other() {
            return self.near & bit(label) != 0;
        }
        self.earlier & bit(label) != 0 || self.earlier & !bit(Other) == 0 && self.later & bit(label) != 0
    }

    /// Returns whether the nearest word labels the number as impersonal.
    pub(super) fn other(self) -> bool {
        self.near & bit(Other) != 0
    }
}

fn bit(label: Label) -> u32 {
    1 << label as u32
}

/// Returns whether a match is a whole word, or one of the words in `snake_case` or `camelCase`. Scripts
/// without spaces have no boundaries.
fn whole(text: &str, start: usize, end: usize) -> bool {
    let found = &text[start..end];
    let (Some(first), Some(last)) = (found.chars().next(), found.chars().next_back()) else { return false };
    let begins = match text[..start].chars().next_back() {
        Some(it) if it.is_alphabetic() && !spaceless(it) && !spaceless(first) => {
            it.is_lowercase() && first.is_ascii_uppercase()
        }
        _ => true,
    };
    let mut rest = text[end..].chars();
    let mut after = rest.next();
    if after == Some('s') {
        after = rest.next();
    }
    let ends = match after {
        Some(it) if it.is_alphabetic() && !spaceless(it) && !spaceless(last) => {
            last.is_lowercase() && it.is_ascii_uppercase()
        }
        _ => true,
    };
    begins && ends
}

/// Returns whether the letter's script has words without spaces or with joined particles: Han, kana, Hangul,
/// Thai.
fn spaceless(char: char) -> bool {
    matches!(u32::from(char), 0x0E00..=0x0E7F | 0x1100..=0x11FF | 0x3040..=0x9FFF | 0xAC00..=0xD7AF)
}
