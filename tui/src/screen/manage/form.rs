//! The forms of Keys & Projects: a new API key and a new project.

use std::sync::Arc;

use uuid::Uuid;

use super::change::ManageChange;
use crate::{
    change::Change,
    dialog::{Choice, Field, FieldError, FieldName, Form, FormPurpose, PROJECT_FIELD},
    ids::LoadedIds,
};

const NAME_FIELD: FieldName = FieldName { title: "Name", hint: "any text" };
const ACCESS_FIELD: FieldName = FieldName { title: "Access", hint: "a query key reads and changes nothing" };
/// The word of the access that only reads.
const QUERY_ACCESS: &str = "query";

/// Creates an API key.
#[derive(Clone, Copy, Debug)]
struct NewKeyForm;

impl FormPurpose for NewKeyForm {
    fn title(&self) -> &'static str {
        "New API key"
    }

    fn verb(&self) -> &'static str {
        "Create"
    }

    fn read(&self, form: &Form, _loaded: &LoadedIds) -> Result<Arc<dyn Change>, FieldError> {
        Ok(Arc::new(ManageChange::CreateKey {
            name: name(form)?,
            query: form.word(ACCESS_FIELD).as_deref() == Some(QUERY_ACCESS),
            project: form.word(PROJECT_FIELD).and_then(|id| id.parse().ok()),
        }))
    }
}

/// Returns the form of a new API key, for this project if it is one of them.
pub fn new_key(project: Option<Uuid>, projects: Vec<(Uuid, String)>) -> Form {
    let pair = |word: &str, shown: &str| (word.to_owned(), shown.to_owned());
    let access = vec![pair("full", "full access"), pair(QUERY_ACCESS, "query (read)")];
    let mut options = vec![pair("", "the oldest active project")];
    options.extend(projects.into_iter().map(|(id, name)| (id.to_string(), name)));
    let project = project.map(|id| id.to_string());
    let fields = vec![
        Field::text(NAME_FIELD, ""),
        Field::choice(ACCESS_FIELD, Choice::among(access, None)),
        Field::choice(PROJECT_FIELD, Choice::among(options, project.as_deref())),
    ];
    Form::new(Arc::new(NewKeyForm), fields)
}

/// Creates a project.
#[derive(Clone, Copy, Debug)]
struct NewProjectForm;

impl FormPurpose for NewProjectForm {
    fn title(&self) -> &'static str {
        "New project"
    }

    fn verb(&self) -> &'static str {
        "Create"
    }

    fn read(&self, form: &Form, _loaded: &LoadedIds) -> Result<Arc<dyn Change>, FieldError> {
        Ok(Arc::new(ManageChange::CreateProject { name: name(form)? }))
    }
}

/// Returns the form of a new project.
pub fn new_project() -> Form {
    Form::new(Arc::new(NewProjectForm), vec![Field::text(NAME_FIELD, "")])
}

fn name(form: &Form) -> Result<String, FieldError> {
    match form.typed(NAME_FIELD) {
        "" => Err(form.error(NAME_FIELD, "a name is required")),
        name => Ok(name.to_owned()),
    }
}
