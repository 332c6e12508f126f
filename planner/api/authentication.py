"""Who asks: the holder of an API token."""

from django.contrib.auth.models import User
from django.utils import timezone
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from rest_framework.exceptions import AuthenticationFailed

from planner.models import ApiToken

SCHEMES = (b"token", b"bearer")


class ApiTokenAuthentication(TokenAuthentication):
    """`Authorization: Token …` or `Bearer …`, found by its hash in one query; nothing is written."""

    def authenticate(self, request):
        words = request.META.get("HTTP_AUTHORIZATION", "").encode("utf-8", "replace").split()
        if not words or words[0].lower() not in SCHEMES:
            return None
        if len(words) != 2:
            raise AuthenticationFailed("The header needs one token and no spaces in it.")
        return self.authenticate_credentials(words[1])

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        digest = hash_token(token.decode("utf-8", "replace"))
        found = ApiToken.objects.select_related("user").filter(digest=digest).first()
        if found is None:
            raise AuthenticationFailed("This token is not known; it may have been revoked.")
        if found.expiry and found.expiry <= timezone.now():
            raise AuthenticationFailed(f"This token expired on {found.expiry:%Y-%m-%d}.")
        if not found.user.is_active:
            raise AuthenticationFailed("The account of this token is closed.")
        return found.user, found
