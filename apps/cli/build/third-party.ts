import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

interface ThirdParty {
	/** Where it is installed. */
	readonly folder: string;
	readonly modules: readonly string[];
}

/**
 * The licenses of what a bundle contains of other packages, which have to accompany it.
 *
 * @param modules - the paths of all modules of the bundle.
 * @throws Error if the bundle contains a package twice, or one without a license.
 */
export function thirdPartyNotices(modules: readonly string[]): string {
	const packages = thirdParties(modules)
		.map(({ folder, modules }) => {
			const { name, version, license }: Readonly<Record<string, string>> = JSON.parse(
				readFileSync(join(folder, "package.json"), "utf8"),
			);
			return { name: `${name} ${version}: ${license}`, texts: licenseTexts(folder, modules) };
		})
		.sort((a, b) => (a.name < b.name ? -1 : 1));
	const sections = packages.map(({ name, texts }) => {
		if (texts.length === 0) {
			throw new Error(`${name} is bundled, and has no license that could be included`);
		}
		return [name, "=".repeat(name.length), ...texts].join("\n\n");
	});
	return `${[introduction, ...sections].join("\n\n\n")}\n`;
}

const introduction = `The files of this folder contain code of the packages below. The Apache License 2.0, which some of
them refer to, is in the file LICENSE of this package.`;

function thirdParties(modules: readonly string[]): readonly ThirdParty[] {
	const byFolder = Map.groupBy(
		modules,
		(path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? "",
	);
	byFolder.delete("");
	const found = [...byFolder].map(([folder, modules]) => ({ folder, modules }));
	for (const [name, copies] of Map.groupBy(found, ({ folder }) => nameOf(folder))) {
		if (copies.length > 1) {
			const folders = copies.map(({ folder }) => folder).join(" and ");
			throw new Error(`${name} would be bundled more than once: from ${folders}`);
		}
	}
	return found;
}

function nameOf(folder: string): string {
	return folder.slice(folder.lastIndexOf("/node_modules/") + "/node_modules/".length);
}

/** The files with the license of a package. Where it has none: the notices at the beginning of its modules, once each. */
function licenseTexts(folder: string, modules: readonly string[]): readonly string[] {
	const files = readdirSync(folder).filter((file) =>
		/^(licen[cs]e|notice|copying)/i.test(basename(file)),
	);
	if (files.length > 0) {
		return files.map((file) => readFileSync(join(folder, file), "utf8").trim());
	}
	return [...new Set(modules.flatMap((path) => noticeOf(readFileSync(path, "utf8"))))].sort();
}

/** The comment with which a module begins, if it names a holder of the copyright. */
function noticeOf(source: string): readonly string[] {
	const lines = source.split("\n");
	const end = lines.findIndex((line) => !line.startsWith("//"));
	const text = lines
		.slice(0, end)
		.map((line) => line.replace(/^\/\/ ?/, ""))
		.join("\n")
		.trim();
	return /^Copyright/m.test(text) ? [text] : [];
}
