import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describeProblem } from "@plinth/documents";
import {
	parseDocuments,
	type ReadOptions,
	readDocument,
	type WantedResource,
} from "@plinth/documents/yaml";
import { usageFailure } from "../failure.ts";
import type { Io } from "../io.ts";
import { readFailure } from "../read-failure.ts";

/** The maximum number of problems in a failure. */
const maxProblems = 20;

/**
 * Reads the resources of all documents in the files; `-` is standard input, a folder means the YAML and JSON
 * files in it.
 *
 * @throws Failure that lists the problems of all documents.
 */
export async function readFiles(
	files: readonly string[],
	io: Io,
	options: ReadOptions,
): Promise<readonly WantedResource[]> {
	const wanted: WantedResource[] = [];
	const problems: string[] = [];
	for (const { file, text } of await textsOf(files, io)) {
		for (const source of parseDocuments(file, text)) {
			const resource = readDocument(source, options);
			problems.push(...source.problems.map((problem) => describeProblem(source.origin, problem)));
			if (resource !== undefined) {
				wanted.push(resource);
			}
		}
	}
	if (problems.length > 0) {
		const more = problems.length - maxProblems;
		throw usageFailure(
			[
				...problems.slice(0, maxProblems),
				...(more > 0 ? [`and ${more} more`] : []),
				"nothing was changed",
			].join("\n"),
		);
	}
	if (wanted.length === 0) {
		throw usageFailure(`no documents in ${files.map(nameOf).join(", ")}`);
	}
	return wanted;
}

interface Text {
	readonly file: string;
	readonly text: string;
}

async function textsOf(files: readonly string[], io: Io): Promise<readonly Text[]> {
	const texts: Text[] = [];
	for (const file of files) {
		if (file === "-") {
			texts.push({ file: nameOf(file), text: await io.readStdin() });
			continue;
		}
		try {
			const isFolder = statSync(file).isDirectory();
			for (const one of isFolder ? filesIn(file) : [file]) {
				texts.push({ file: one, text: readFileSync(one, "utf8") });
			}
		} catch (cause) {
			throw usageFailure(`can't read ${file}: ${readFailure(cause)}`, { cause });
		}
	}
	return texts;
}

function filesIn(folder: string): readonly string[] {
	return readdirSync(folder)
		.filter((name) => /\.(ya?ml|json)$/.test(name))
		.sort()
		.map((name) => join(folder, name));
}

function nameOf(file: string): string {
	return file === "-" ? "standard input" : file;
}
