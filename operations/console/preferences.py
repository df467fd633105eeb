"""A person's settings at work: their language, their time zone, and how the pages look."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from operations.models import UserSettings


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the pages ask for. `zone` is the name of the time zone that times are shown in."""

    zone: str = "UTC"
    own_zone: str = ""
    theme: str = ""
    shortcuts: bool = True
    dense: bool = False


class SignIn(ModelBackend):
    """Django's own, that reads a person's settings with the person, in one query."""

    def get_user(self, user_id: int) -> User | None:
        """The person of a session."""
        user = User.objects.select_related("console_settings").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


class UsePreferences:
    """Activates the reader's language and time zone. `?times=utc` shows one page in UTC."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass it on under the reader's settings."""
        kept = _kept(request)
        own_zone = kept.time_zone if kept.time_zone in time_zones() else ""
        zone = "UTC" if request.GET.get("times") == "utc" else own_zone or "UTC"
        request.preferences = Preferences(  # type: ignore[attr-defined]
            zone=zone,
            own_zone=own_zone,
            theme=kept.theme,
            shortcuts=kept.shortcuts,
            dense=kept.dense,
        )
        if kept.language:
            translation.activate(kept.language)
            request.LANGUAGE_CODE = translation.get_language()
        with timezone.override(ZoneInfo(zone)):
            return self._get_response(request)


def preferences(request: HttpRequest) -> dict[str, Preferences | str]:
    """For every template: the preferences, and the address of this page in the other times."""
    chosen = getattr(request, "preferences", Preferences())
    query = request.GET.copy()
    if query.pop("times", None) is None:
        query["times"] = "utc"
    return {"preferences": chosen, "other_times": f"?{query.urlencode()}"}


@cache
def time_zones() -> frozenset[str]:
    """The names that can be chosen: places, and UTC."""
    return frozenset(
        name for name in available_timezones() if "/" in name and not name.startswith("Etc/")
    )


def _kept(request: HttpRequest) -> UserSettings:
    # Who has no session is nobody; nothing is read for them.
    if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
        try:
            kept: UserSettings = request.user.console_settings
            return kept
        except ObjectDoesNotExist:
            pass
    return UserSettings()
