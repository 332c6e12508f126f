"""What somebody sends to be added: it is on the list, or its form comes back with what was typed and every fault."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from planner.core.errors import PlanningError
from planner.forms import CsvForm, PlannerForm
from planner.imports import Import

Form = TypeVar("Form", bound=PlannerForm)


def form_answer(
    request: HttpRequest,
    form: Form,
    *,
    add: Callable[[Form], Any],
    done: Callable[[Any], HttpResponse],
    again: Callable[[Form], HttpResponse],
) -> HttpResponse:
    """Add what a form holds and go where `done` leads, or show the form `again` with the faults beside their fields."""
    if form.is_valid():
        try:
            row = add(form)
        except PlanningError as fault:
            form.refuse(fault)
        else:
            messages.success(request, f"{row} is on the list.")
            return done(row)
    return again(form)


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
