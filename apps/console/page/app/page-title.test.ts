import { expect, it } from "vitest";
import { pageTitle } from "./page-title.ts";

it.each([
	["/", "Overview · Plinth"],
	["/controllers", "Controllers · Plinth"],
	["/controllers/catalog-prober", "catalog-prober · Controllers · Plinth"],
	["/flow", "Graph of controllers · Plinth"],
	["/types", "Types · Plinth"],
	["/types/catalog.v1.Workload", "Workload · Plinth"],
	["/types/catalog.v1.Workload/web-1", "web-1 · Workload · Plinth"],
	["/types/catalog.v1.Workload/web-1/graph", "Graph · web-1 · Workload · Plinth"],
	["/create/catalog.v1.Workload", "Create Workload · Plinth"],
	["/types/%3Cscript%3E", "<script> · Plinth"],
	["/types/%E0", "%E0 · Plinth"],
	["/nowhere", "Plinth"],
])("the page at %s is called %s", (path, title) => {
	expect(pageTitle(path)).toBe(title);
});
