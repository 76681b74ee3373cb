import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.js";
import "./style.css";

const page = document.getElementById("page");
if (page) createRoot(page).render(<StrictMode><App /></StrictMode>);
