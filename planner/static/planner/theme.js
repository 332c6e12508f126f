// Before the first paint: the theme somebody chose, if they chose one; otherwise the system's.
document.documentElement.dataset.theme = localStorage.getItem("theme") || "";
