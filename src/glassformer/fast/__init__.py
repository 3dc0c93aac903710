"""The same answers sooner: CTranslate2 as an engine and as an export, and linear layers in 8-bit whole numbers."""
