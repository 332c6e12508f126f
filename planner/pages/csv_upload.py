"""A CSV upload as the pages take it: added, or the same form again with its text and every fault."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from planner.forms import CsvForm
from planner.imports import Import


def csv_answer(
    request: HttpRequest,
    *,
    importer: Callable[..., Import],
    noun: str,
    done: str,
    again: Callable[..., HttpResponse],
) -> HttpResponse:
    """Import the file of a request and go to the list `done`, or show `again` its text with every fault."""
    form = CsvForm(request.POST, request.FILES)
    if not form.is_valid():
        return again(request, csv_form=form, status=422)
    result = importer(user=request.user, text=form.cleaned_data["table"])
    if not result.faults:
        messages.success(request, f"{result.added} {noun}{'' if result.added == 1 else 's'} added.")
        return redirect(done)
    kept = CsvForm(initial={"text": form.cleaned_data["table"]})
    return again(request, csv_form=kept, faults=result.faults, status=422)
