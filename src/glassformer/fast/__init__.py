"""The same answers sooner: engines in C++ and CTranslate2, exports for the latter, layers in 8-bit whole numbers."""
