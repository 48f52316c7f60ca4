import { nameOfKey, ruleName } from "@plinth/documents";
import type { ListReferencesResponse } from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { isMarkedForDeletion } from "@plinth/resource";
import { readResource } from "../api/read-resources.ts";
import { listReferences, planDeletion } from "../api/references.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { showPlan } from "../output/deletion-plan.ts";
import { printable } from "../output/printable.ts";
import { plainCell, renderTable } from "../output/table.ts";
import { parseTarget } from "./targets.ts";

/** Prints what a resource references, what references it, and what its deletion would do. */
export async function refs(session: ServerSession, words: readonly string[]): Promise<ExitCode> {
	const target = parseTarget(words, await session.types());
	const resource = await readResource(session, target.type, target.name);
	const { id } = resource;
	if (id === undefined) {
		throw new Error("the server has sent a resource without an ID");
	}
	const references = await listReferences(session, id);
	const plan = await planDeletion(session, id);
	const isMarked = isMarkedForDeletion(resource);
	session.io.out(
		[
			section("references", outgoingTable(references, session)),
			section("referenced by", incomingTable(references, session)),
			section("deletion", showPlan(plan, { isMarked, ...layoutOf(session) })),
		].join(""),
	);
	return exitCodes.ok;
}

function section(title: string, text: string): string {
	return `${title}:\n${(text || "none\n").replaceAll(/^(?=.)/gm, "  ")}`;
}

function outgoingTable({ targets }: ListReferencesResponse, session: ServerSession): string {
	const rows = targets.map(({ path, resource, rule, isMissing }) => [
		path,
		nameOfKey(resource),
		ruleName(rule),
		isMissing ? "missing" : "",
	]);
	return tableOf(["FIELD", "TARGET", "ON-DELETE", "NOTE"], rows, session);
}

function incomingTable(references: ListReferencesResponse, session: ServerSession): string {
	const { incoming, hidden, hasMore, unknown } = references;
	const rows = incoming.map(({ resource, paths, rules, isOwnee }) => [
		nameOfKey(resource),
		paths.join(", "),
		rules.map(ruleName).join(", "),
		isOwnee ? "names it as owner" : "",
	]);
	const notes = [
		...(hidden > 0 ? [`${hidden} more, which you may not read`] : []),
		...(hasMore ? ["and more: this many are shown"] : []),
		...unknown.map((deployment) => `not known: ${printable(deployment)}`),
	];
	const table = tableOf(["RESOURCE", "FIELD", "ON-DELETE", "NOTE"], rows, session);
	return `${table}${notes.map((note) => `${note}\n`).join("")}`;
}

function tableOf(
	headings: readonly string[],
	rows: readonly (readonly string[])[],
	session: ServerSession,
): string {
	const columns = headings.map((heading, at) => ({ heading, cut: at > 0 }));
	return rows.length === 0
		? ""
		: renderTable(
				columns,
				rows.map((row) => row.map((text) => plainCell(printable(text)))),
				layoutOf(session),
			);
}

/** Sections are indented by two columns. */
function layoutOf({ io }: ServerSession) {
	return { width: io.width === undefined ? undefined : io.width - 2, color: io.color };
}
