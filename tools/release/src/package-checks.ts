import { readFile } from "node:fs/promises";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { problemAffectsResolutionKind } from "@arethetypeswrong/core/problems";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

/** What publint finds in a packed package, suggestions included, a line each. */
export async function publishingProblems(tarball: string): Promise<readonly string[]> {
	const { buffer, byteOffset, byteLength } = Uint8Array.from(await readFile(tarball));
	const { messages, pkg } = await publint({
		pack: { tarball: buffer.slice(byteOffset, byteOffset + byteLength) },
		strict: true,
	});
	return messages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code);
}

/**
 * What attw finds in a packed package for those who import it as an ES module, as nodenext and bundlers do.
 * CommonJS and the resolution of Node 10 are left out: the packages are ES modules only.
 */
export async function typeProblems(tarball: string): Promise<readonly string[]> {
	const packed = createPackageFromTarballData(Uint8Array.from(await readFile(tarball)));
	const analysis = await checkPackage(packed);
	if (analysis.types === false) {
		return ["it has no types"];
	}
	return analysis.problems
		.filter((problem) =>
			(["node16-esm", "bundler"] as const).some((kind) =>
				problemAffectsResolutionKind(problem, kind, analysis),
			),
		)
		.map((problem) => JSON.stringify(problem));
}
