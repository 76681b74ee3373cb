//! Types and traits of contract 0.1.0, generated from its WIT.

wasmtime::component::bindgen!({
    inline: "
        package tidegate:host;
        world host {
            include tidegate:extension/extension@0.1.0;
            include tidegate:extension/with-clock@0.1.0;
            include tidegate:extension/with-events@0.1.0;
            include tidegate:extension/with-history@0.1.0;
            include tidegate:extension/with-random@0.1.0;
            include tidegate:extension/with-session@0.1.0;
            include tidegate:extension/with-settings@0.1.0;
            include tidegate:extension/with-state@0.1.0;
            include tidegate:extension/with-tool-progress@0.1.0;
            include tidegate:extension/with-tools@0.1.0;
            include tidegate:extension/with-tool-provider@0.1.0;
            include tidegate:extension/with-migration@0.1.0;
            include tidegate:extension/with-on-input-messages@0.1.0;
            include tidegate:extension/with-on-plain-text@0.1.0;
            include tidegate:extension/with-on-tag@0.1.0;
            include tidegate:extension/with-on-llm-output@0.1.0;
            include tidegate:extension/with-ttsr-triggered@0.1.0;
            include tidegate:extension/with-on-tool-call@0.1.0;
            include tidegate:extension/with-on-tool-result@0.1.0;
        }
    ",
    path: "../../sdk/wit/0.1.0",
    world: "tidegate:host/host",
    imports: { "tidegate:extension/random.bytes": trappable },
    ownership: Borrowing { duplicate_if_necessary: true },
});
