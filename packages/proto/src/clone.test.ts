import { globSync } from "node:fs";
import { assertClones, clonersUnderTest } from "@plinth/protoc-gen-clone/testing";
import { describe, it } from "vitest";

/** What is generated for one package of protos. */
async function generated(directory: string): Promise<Record<string, unknown>> {
	const files = globSync(`${directory}/*.ts`, { cwd: import.meta.dirname });
	const modules = files.map((file) => import(new URL(file, import.meta.url).href));
	return Object.assign({}, ...(await Promise.all(modules)));
}

const packages = globSync("gen/plinth/*/*", { cwd: import.meta.dirname });
const cloners = (await Promise.all(packages.map(generated))).flatMap((all) =>
	clonersUnderTest(all, all),
);

describe("the generated cloners", () => {
	it.each(cloners.map((cloner) => [cloner.schema.typeName, cloner] as const))(
		"clone random messages of %s",
		(_typeName, cloner) => assertClones(cloner, { runs: 100, seed: 1 }),
	);
});
