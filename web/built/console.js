/*! Contains Preact (MIT, (c) Jason Miller) and Preact Signals (MIT, (c) Preact Team). */
