import { describe, expect, it } from "vitest";
import { addToModule } from "./edit-module.ts";

const zone = { list: "types", name: "Zone", from: "./types/zone" } as const;
const planner = {
	list: "controllers",
	name: "zonePlanner",
	from: "./controllers/zone-planner",
} as const;

const simple = `import { defineModule } from "@plinth/plinth/server";
import { siteProber } from "./controllers/site-prober.ts";
import { Site } from "./types/site.ts";

export default defineModule({ name: "iot", types: [Site], controllers: [siteProber] });
`;

describe("a module file", () => {
	it("gets an import and an entry", () => {
		expect(addToModule(simple, zone)).toBe(`import { defineModule } from "@plinth/plinth/server";
import { siteProber } from "./controllers/site-prober.ts";
import { Site } from "./types/site.ts";
import { Zone } from "./types/zone.ts";

export default defineModule({ name: "iot", types: [Site, Zone], controllers: [siteProber] });
`);
	});

	it("keeps the order of its imports", () => {
		expect(addToModule(simple, planner)?.split("\n")).toEqual([
			'import { defineModule } from "@plinth/plinth/server";',
			'import { siteProber } from "./controllers/site-prober.ts";',
			'import { zonePlanner } from "./controllers/zone-planner.ts";',
			'import { Site } from "./types/site.ts";',
			"",
			'export default defineModule({ name: "iot", types: [Site], controllers: [siteProber, zonePlanner] });',
			"",
		]);
	});

	it("keeps quotes, missing semicolons, line ends, comments and lists on several lines", () => {
		const source = [
			"import { Site } from './types/site.js' // Sites, 🏠",
			"import { defineModule } from '@plinth/plinth/server'",
			"",
			"export default defineModule({",
			"    name: 'iot', // of all things",
			"    types: [",
			"        // a comment, with a comma",
			"        Site, // the first one,",
			"    ],",
			"})",
		].join("\r\n");
		expect(addToModule(source, zone)?.split("\r\n")).toEqual([
			"import { Site } from './types/site.js' // Sites, 🏠",
			"import { defineModule } from '@plinth/plinth/server'",
			"import { Zone } from './types/zone.js'",
			"",
			"export default defineModule({",
			"    name: 'iot', // of all things",
			"    types: [",
			"        // a comment, with a comma",
			"        Site, // the first one,",
			"        Zone,",
			"    ],",
			"})",
		]);
	});

	it.each([
		["no list", '{ name: "iot" }', '{ name: "iot", types: [Zone] }'],
		["an empty object", "{}", "{ types: [Zone] }"],
		["an empty list", '{ name: "iot", types: [] }', '{ name: "iot", types: [Zone] }'],
		["no list, on several lines", '{\n\tname: "iot"\n}', '{\n\tname: "iot",\n\ttypes: [Zone]\n}'],
		[
			"a last item without a comma",
			"{\n\ttypes: [\n\t\tA /* , */ // a\n\t] }",
			"{\n\ttypes: [\n\t\tA, /* , */ // a\n\t\tZone\n\t] }",
		],
		["a list with a spread", "{ types: [...others] }", "{ types: [...others, Zone] }"],
		["a quoted name", '{ "types": [A] }', '{ "types": [A, Zone] }'],
	])("with %s is extended", (_, before, after) => {
		const source = (argument: string) =>
			`import { defineModule } from "x";\nconst A = 1, others = [A];\nexport default defineModule(${argument});\n`;
		const expected = source(after).replace(
			"const A",
			'import { Zone } from "./types/zone.ts";\nconst A',
		);
		expect(addToModule(source(before), zone)).toBe(expected);
	});

	it("may have its list in a constant", () => {
		const source = `import { defineModule } from "x";
const types = [A];
export default defineModule({ name: "iot", types });
`;
		expect(addToModule(source, zone)).toContain("const types = [A, Zone];");
	});

	it.each([
		["is not TypeScript", "export default defineModule({ types: [ });"],
		["calls no defineModule", "export default { types: [] };"],
		["calls defineModule twice", "defineModule({}); defineModule({});"],
		["passes no object", "defineModule(definition);"],
		["spreads the object", "defineModule({ ...definition });"],
		["computes the list", "defineModule({ types: all() });"],
		["uses the name already", "const Zone = 1; defineModule({ types: [] });"],
		["is empty", ""],
	])("that %s is left to the user", (_, source) => {
		expect(addToModule(source, zone)).toBeUndefined();
	});
});
