//! The wire representation of built-in evaluators.

use api::evaluator::Evaluator;

use crate::definition::Definition;

impl Definition {
    /// Returns the built-in evaluator as `GET /v1/evaluators` and the CLI list it.
    pub fn described(&self) -> Evaluator {
        let types = self.types();
        Evaluator {
            name: self.name.to_owned(),
            display_name: self.display_name.to_owned(),
            tags: self.tags.iter().map(|it| (*it).to_owned()).collect(),
            evaluator_type: types[0],
            evaluator_types: types.to_vec(),
            description: self.description.to_owned(),
            version: self.version.into(),
            config_schema: self.config_schema(),
            builtin: true,
            rubric: None,
            scale: None,
            checks: None,
            combine: None,
            created_at: None,
            updated_at: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use api::EvaluatorType;

    use crate::builtin::ALL;

    #[test]
    fn every_builtin_has_a_description_and_a_default_type() {
        for definition in ALL {
            let shown = definition.described();
            assert_eq!(definition.rubric().is_none(), shown.evaluator_types == [EvaluatorType::Rule]);
            assert_eq!(shown.evaluator_type, definition.selected_type(&Default::default()), "{}", shown.name);
            assert!(shown.config_schema["type"] == "object" && !shown.description.is_empty());
        }
    }
}
