import { ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	Lifecycle,
	type ResourceKey,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isNetworkFailure } from "../api/network-failure.ts";
import { readResource } from "../api/read-resources.ts";
import { type IncomingReference, readReferences } from "../api/references.ts";
import { exitCodes } from "../exit-codes.ts";
import { plainCell, printable, renderTable } from "../output/table.ts";
import type { Session } from "../session.ts";
import type { AddCommand } from "./runner.ts";
import { parseTarget } from "./targets.ts";

/** `plinth refs`: prints what a resource references, what references it, and whether a deletion would be accepted. */
export const addRefs: AddCommand = (program, run) => {
	program
		.command("refs <type> [name]")
		.description("print a resource's references, what references it, and whether it can be deleted")
		.action((type: string, name: string | undefined) =>
			run(async (session) => {
				const words = name === undefined ? [type] : [type, name];
				const target = parseTarget(words, await session.types());
				const resource = await readResource(session, target.type, target.name);
				const { shadow, incoming } = await readReferences(session, resource);
				session.io.out(
					[
						section("references", outgoingTable(shadow, session)),
						section("referenced by", incomingTable(incoming, session)),
						section("referenced from deployments", deploymentTable(shadow, session)),
						section("state", stateOf(shadow)),
						section("deletion", await tryDeletion(session, resource)),
					].join(""),
				);
				return exitCodes.ok;
			}),
		);
};

function section(title: string, text: string): string {
	return `${title}:\n${(text || "none\n").replaceAll(/^(?=.)/gm, "  ")}`;
}

function outgoingTable(shadow: Shadow | undefined, session: Session): string {
	const rows = (shadow?.outgoing ?? []).map(({ path, target, rule, targetUid }) => [
		path,
		nameOf(target),
		ruleName(rule),
		targetUid === "" ? "missing" : "",
	]);
	return tableOf(["FIELD", "TARGET", "ON-DELETE", "NOTE"], rows, session);
}

function incomingTable(incoming: readonly IncomingReference[], session: Session): string {
	const rows = incoming.map(({ from, reference }) => [
		nameOf(from),
		reference.path,
		ruleName(reference.rule),
	]);
	return tableOf(["RESOURCE", "FIELD", "ON-DELETE"], rows, session);
}

function deploymentTable(shadow: Shadow | undefined, session: Session): string {
	const rows = (shadow?.sources ?? []).map(({ deployment, rules, tentative }) => [
		deployment?.service || "(this server)",
		deployment?.region ?? "",
		rules.map(ruleName).join(", "),
		tentative ? "not confirmed yet" : "",
	]);
	return tableOf(["SERVICE", "REGION", "ON-DELETE", "NOTE"], rows, session);
}

function tableOf(
	headings: readonly string[],
	rows: readonly (readonly string[])[],
	{ io }: Session,
): string {
	const columns = headings.map((heading, at) => ({ heading, cut: at > 0 }));
	const width = io.width === undefined ? undefined : io.width - 2;
	return rows.length === 0
		? ""
		: renderTable(
				columns,
				rows.map((row) => row.map(plainCell)),
				{ width, color: io.color },
			);
}

function stateOf(shadow: Shadow | undefined): string {
	switch (shadow?.lifecycle) {
		case Lifecycle.CHECKING:
			return "deletion requested, checking which resources reference it\n";
		case Lifecycle.DELETING:
			return `being deleted${describeProgress(shadow)}\n`;
		default:
			return "not being deleted\n";
	}
}

function describeProgress({ progress }: Shadow): string {
	const waitingFor = progress?.waitingFor ?? [];
	return waitingFor.length === 0 ? "" : `, waiting for ${waitingFor.join("; ")}`;
}

/** The result of a dry run of the deletion. */
async function tryDeletion(session: Session, { id }: Resource): Promise<string> {
	try {
		await session.connection.resources.delete(
			{ ...(id && { id }), dryRun: true },
			{ signal: session.io.signal },
		);
		return "would be accepted\n";
	} catch (error) {
		const isRefusal = error instanceof ConnectError && !isNetworkFailure(error);
		if (isRefusal && !session.io.signal.aborted) {
			return `would be refused: ${printable(error.rawMessage)}\n`;
		}
		throw error;
	}
}

function nameOf(key: ResourceKey | undefined): string {
	if (key === undefined) {
		return "";
	}
	const path = [key.partition, key.namespace, key.name].filter((part) => part !== "").join("/");
	return `${key.group}.${key.kind} ${path}${key.region === "" ? "" : ` in ${key.region}`}`;
}

function ruleName(rule: OnDelete): string {
	switch (rule) {
		case OnDelete.BLOCK:
			return "block";
		case OnDelete.CASCADE:
			return "cascade";
		case OnDelete.UNSET:
			return "unset";
		default:
			return "";
	}
}
