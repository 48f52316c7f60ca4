import fc from "fast-check";
import { parseSync } from "oxc-parser";
import { expect, it } from "vitest";
import { addToModule } from "../module-file/edit-module.ts";
import { contentsOf, temporaryProject } from "../project/project.fixture.ts";
import { ScaffoldError } from "../scaffold-error.ts";
import { planType } from "./add-type.ts";
import { fieldTypes } from "./parse-fields.ts";

/** Mostly well-formed texts, some that are nearly so, and some that are not. */
const texts = (usual: fc.Arbitrary<string>, special: readonly string[]) =>
	fc.oneof(
		{ weight: 20, arbitrary: usual },
		{ weight: 4, arbitrary: fc.constantFrom(...special) },
		{ weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
	);

const names = texts(fc.stringMatching(/^[A-Z][A-Za-z0-9]{1,12}$/), [
	...[
		"Object",
		"Map",
		"Function",
		"Message",
		"Reference",
		"Project",
		"IPv4",
		"HTTPZone",
		"Package",
	],
	...[
		"String",
		"Optional",
		"Reserved",
		"Option",
		"Enum",
		"A",
		"zone",
		"ZoneSchema",
		"Plinth",
		"Buf",
	],
]);
const fieldNames = texts(fc.stringMatching(/^[a-z][a-z0-9]{0,8}(_[a-z0-9]{1,4})?$/), [
	...["plinth", "buf", "google", "constructor", "to_string", "message", "option", "reserved"],
	...["string", "a_b", "ab", "class", "default", "__proto__", "true", "inf", "optional", "syntax"],
]);
const packages = texts(fc.stringMatching(/^[a-z][a-z0-9]{1,6}(\.[a-z][a-z0-9_]{1,6})?\.v[1-9]$/), [
	...[
		"iot.v1",
		"acme.iot.v1beta1",
		"iot",
		"v1",
		"iot.v0",
		"plinth.v1",
		"class.v1",
		"a.v1",
		"iot.v10",
	],
]);
const fields = fc
	.tuple(fieldNames, texts(fc.constantFrom(...Object.keys(fieldTypes)), ["uint33", "Project"]))
	.map(([name, type]) => `${name}:${type}`);
const references = fc
	.tuple(
		fc.option(fieldNames),
		texts(fc.constantFrom("Project", "iot.v1.Project", "tenancy.v1.Namespace"), [
			"Zone",
			"iam.v1.User",
		]),
		texts(fc.constantFrom("block", "cascade", "unset"), ["", "delete"]),
	)
	.map(([name, type, rule]) => `${name === null ? "" : `${name}=`}${type}:${rule}`);
const options = fc.record(
	{
		name: names,
		scope: texts(fc.constantFrom("namespace", "partition", "cluster", "global"), ["none"]),
		package: packages,
		fields: fc.array(fields, { maxLength: 4 }),
		references: fc.array(references, { maxLength: 3 }),
	},
	{ requiredKeys: ["name"] },
);

it("either says in a sentence why not, or writes protos that buf accepts and TypeScript that parses", async () => {
	const project = await temporaryProject();
	const contents = await contentsOf(project);
	const written = new Set(["src/types/project.ts"]);
	let refusals = 0;
	await fc.assert(
		fc.asyncProperty(options, async (each) => {
			const plan = planned(() => planType({ from: project.root, ...each }, contents));
			if (plan === undefined) {
				refusals++;
				return;
			}
			const [proto, definition] = plan.files;
			if (proto === undefined || definition === undefined || written.has(definition.path)) {
				return;
			}
			expect(parseSync(definition.path, definition.content).errors).toEqual([]);
			expect(addToModule(await project.read("src/module.ts"), plan.addition)).toBeDefined();
			written.add(definition.path);
			await project.write(proto.path, proto.content);
		}),
		{ numRuns: 60 },
	);
	expect(await project.buf("lint", "proto")).toBe("");
	expect(await project.buf("format", "--diff", "--exit-code", "proto")).toBe("");
	expect(Math.min(written.size, refusals)).toBeGreaterThan(5);
});

function planned<T>(work: () => T): T | undefined {
	try {
		return work();
	} catch (error) {
		if (!(error instanceof ScaffoldError)) {
			throw error;
		}
		expect(error.message).toMatch(/^[^\n]{20,}$/);
		return undefined;
	}
}
