"""Answers with the time, and puts notes in capital letters."""

from wit_world import exports
from wit_world.exports import on_plain_text, on_tag, registration
from wit_world.imports import clock, log


class Registration(exports.Registration):
    def register(self, about: registration.About) -> registration.RegisteredExtension:
        log.log(log.Level.INFO, f"host {about.contract}", [])
        lines = registration.TextOptions(
            unit=registration.TextUnit_Line(), streams=[], on_failure=None, attributes=[]
        )
        notes = registration.TagOptions(
            patterns=["note"], on_failure=registration.OnFailure_Withhold(), attributes=[]
        )
        return registration.RegisteredExtension(
            callbacks=[
                registration.Registered(registration.Callback_OnPlainText(lines), None, []),
                registration.Registered(registration.Callback_OnTag(notes), 80, []),
            ],
            attributes=[],
        )


class OnPlainText(exports.OnPlainText):
    def on_plain_text(self, text: str, place: on_plain_text.TextPlace) -> on_plain_text.TextAnswer:
        if "TIME" in text:
            return on_plain_text.TextAnswer_Replace(text.replace("TIME", str(int(clock.now_ms()))))
        return on_plain_text.TextAnswer_Pass()


class OnTag(exports.OnTag):
    def on_tag(self, tag: on_tag.Tag, place: on_tag.TagPlace) -> on_tag.TagAnswer:
        return on_tag.TagAnswer_Content(tag.content.upper())
