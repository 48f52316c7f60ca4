import { expect, it } from "vitest";
import { tableOfLink } from "./table-link.ts";

it("finds the table of a link, as the page will ask for it", () => {
	expect(
		tableOfLink("#/types/catalog.v1.Workload?partition=a&prefix=web-&q=10.0&sort=-age", 600),
	).toEqual({
		...{ kind: "table", typeKey: "catalog.v1.Workload" },
		...{ tenancy: { partition: "a", namespace: "*" }, namePrefix: "web-" },
		...{ filter: "10.0", order: { by: "age", isDescending: true } },
		...{ start: 0, count: 80 },
	});
});

it.each([
	"",
	"#/",
	"#/types",
	"#/types/a.v1.B/name",
	"#/types/a.v1.B/name?x=1",
	"#/types/%3Cimg%3E",
])("finds none in %j", (fragment) => expect(tableOfLink(fragment, 600)).toBe(undefined));
