import type { Resource } from "@plinth/proto";
import { displayName, isMarkedForDeletion } from "@plinth/resource";
import type { KnownTypes } from "../api/known-types.ts";
import { readResource } from "../api/read-resources.ts";
import { shortDuration } from "../configuration/duration.ts";
import { documentOf, toYaml } from "../document/show-document.ts";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import type { Io } from "../io.ts";
import { conditionsTable } from "../output/conditions-table.ts";
import { resourceName } from "../output/print-resources.ts";
import { createdAtMs } from "../output/resource-table.ts";
import { printable } from "../output/table.ts";
import type { Session } from "../session.ts";
import type { AddCommand } from "./runner.ts";
import { parseNamedTargets } from "./targets.ts";

/** `plinth describe`: prints resources in detail, for people to read, with the resources that they own. */
export const addDescribe: AddCommand = (program, run) => {
	program
		.command("describe <type> [names...]")
		.description("print resources in detail, with the resources that they own")
		.action((type: string, names: readonly string[]) =>
			run(async (session) => {
				const { io } = session;
				const types = await session.types();
				let separator = "";
				for (const target of parseNamedTargets([type, ...names], types)) {
					for (const name of target.names) {
						const resource = await readResource(session, target.type, name);
						const owned = await ownedBy(resource, session);
						io.out(separator + describe(resource, owned, types, io));
						separator = "\n";
					}
				}
				return exitCodes.ok;
			}),
		);
};

/** The resources that a resource owns and that the caller may read; none if the caller may not list them at all. */
async function ownedBy({ id }: Resource, session: Session): Promise<readonly Resource[]> {
	const owned: Resource[] = [];
	let pageToken = "";
	try {
		do {
			const page = await session.call(
				session.connection.resources.listByOwner(
					{ ...(id && { owner: id }), pageSize: 1_000, pageToken },
					{ signal: session.io.signal },
				),
			);
			owned.push(...page.resources);
			pageToken = page.nextPageToken;
		} while (pageToken !== "");
		return owned;
	} catch (error) {
		if (error instanceof Failure && error.exitCode === exitCodes.permission) {
			return [];
		}
		throw error;
	}
}

function describe(
	resource: Resource,
	owned: readonly Resource[],
	types: KnownTypes,
	io: Io,
): string {
	const { data, status, owner, ...fields } = documentOf(resource, types);
	const { metadata, owner_references, ...names } = fields;
	const facts: Record<string, string> = {};
	for (const [field, value] of Object.entries(names)) {
		facts[field] = String(value);
	}
	const createdMs = createdAtMs(resource);
	if (createdMs !== undefined) {
		const age = shortDuration(io.clock.now() - createdMs);
		facts.created = `${new Date(createdMs).toISOString()} (${age} ago)`;
	}
	if (resource.owner !== undefined) {
		facts.owner = displayName(resource.owner);
	}
	if (isMarkedForDeletion(resource)) {
		facts.deletion = "marked for deletion, waiting for its finalizers";
	}
	const width = Math.max(...Object.keys(facts).map((field) => field.length)) + 2;
	const head = Object.entries(facts)
		.map(([field, value]) => `${`${field}:`.padEnd(width)}${printable(value)}\n`)
		.join("");
	const conditions = conditionsTable([resource], io, { showName: false });
	return [
		head,
		section("metadata", metadata === undefined ? "" : toYaml(metadata)),
		section("owner references", owner_references === undefined ? "" : toYaml(owner_references)),
		section("data", data === undefined ? "" : toYaml(data)),
		section("conditions", conditions),
		section("owns", owned.map((one) => `${resourceName(one)}\n`).join("")),
	].join("");
}

function section(title: string, text: string): string {
	return text === "" ? "" : `${title}:\n${text.replaceAll(/^(?=.)/gm, "  ")}`;
}
