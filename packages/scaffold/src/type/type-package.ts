import type { Project } from "../project/find-project.ts";
import type { ProjectTypes } from "../project/project-types.ts";
import { ScaffoldError } from "../scaffold-error.ts";

const partPattern = /^[a-z][a-z\d]*(_[a-z][a-z\d]*)*$/;
const versionPattern = /^v[1-9]\d*((alpha|beta)[1-9]\d*)?$/;

/** First parts of names in the options of types: a package part of that name would hide them. */
const usedInOptions: ReadonlySet<string> = new Set(["buf", "google", "plinth"]);

/**
 * The package of a new type: the given one, or the only one that the project has.
 *
 * @throws ScaffoldError if it can't be one, or the project has several.
 */
export function packageOf(
	given: string | undefined,
	{ types, files }: ProjectTypes,
	project: Project,
): string {
	if (given !== undefined) {
		checkPackage(given);
		return given;
	}
	const withTypes = types.filter(({ isOwn }) => isOwn).map(({ message }) => message.file);
	const packages = (withTypes.length > 0 ? withTypes : files).map(({ proto }) => proto.package);
	const [only, ...others] = new Set(packages);
	if (others.length > 0) {
		throw new ScaffoldError(
			`the project has types in several packages: give one with --package, such as ${only}`,
		);
	}
	const found = only ?? `${groupOf(project.name)}.v1`;
	checkPackage(found);
	return found;
}

function checkPackage(name: string): void {
	const refuse = (why: string) => {
		throw new ScaffoldError(`"${name}" can't be the package of a type: ${why}`);
	};
	const parts = name.split(".");
	const version = parts.pop() ?? "";
	if (!versionPattern.test(version)) {
		refuse("its last part must be a version, as in iot.v1 or iot.v1beta1");
	}
	if (parts.length === 0 || name.length > 100) {
		refuse("it must have a name and a version, as in iot.v1");
	}
	for (const part of parts) {
		if (!partPattern.test(part)) {
			refuse("its parts must be in lower snake_case, as in iot.v1 or acme.smart_home.v1");
		}
		if (usedInOptions.has(part)) {
			refuse(`the part ${part} would hide the package ${part}, whose options types use`);
		}
	}
	if ((parts.at(-1) ?? "").length < 2) {
		refuse("the part before the version, the group of its types, needs at least two characters");
	}
}

/** A group named after a project: `acme_iot` for `@acme/iot`. */
function groupOf(name: string): string {
	const words = name.toLowerCase().split(/[^a-z\d]+/);
	const usable = words.filter((word) => /^[a-z]/.test(word) && !usedInOptions.has(word));
	const group = usable.join("_").slice(0, 40).replace(/_$/, "");
	return group.length < 2 ? "app" : group;
}
