"""Validation rules (x-kubernetes-validations): declarations, correlation with old values, evaluation."""
