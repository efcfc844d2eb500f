"""Rules between pods as groups of classes, planned together (Karpenter's word: topology groups). Pure."""
