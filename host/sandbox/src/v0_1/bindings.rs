//! Types and traits of contract 0.1.0, generated from its WIT.

wasmtime::component::bindgen!({
    inline: "
        package tidegate:host;
        world host {
            include tidegate:extension/extension@0.1.0;
            include tidegate:extension/with-on-input-messages@0.1.0;
            include tidegate:extension/with-on-plain-text@0.1.0;
            include tidegate:extension/with-on-tag@0.1.0;
            include tidegate:extension/with-on-llm-output@0.1.0;
            include tidegate:extension/with-ttsr-triggered@0.1.0;
        }
    ",
    path: "../../sdk/wit/0.1.0",
    world: "tidegate:host/host",
    ownership: Borrowing { duplicate_if_necessary: true },
});
