// Starts the console.

import { render } from "preact";
import { App } from "./app.tsx";

const place = document.getElementById("console");
if (place) render(<App />, place);
