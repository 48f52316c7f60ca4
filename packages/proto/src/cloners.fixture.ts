import { globSync } from "node:fs";
import { clonersUnderTest } from "@plinth/protoc-gen-clone/testing";

/** What is generated for one package of protos. */
async function generated(directory: string): Promise<Record<string, unknown>> {
	const files = globSync(`${directory}/*.ts`, { cwd: import.meta.dirname });
	const modules = files.map((file) => import(new URL(file, import.meta.url).href));
	return Object.assign({}, ...(await Promise.all(modules)));
}

const packages = globSync("gen/plinth/*/*", { cwd: import.meta.dirname });
/** The cloners of all messages. */
export const generatedCloners = (await Promise.all(packages.map(generated))).flatMap((all) =>
	clonersUnderTest(all, all),
);
