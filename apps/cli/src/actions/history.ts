import type { JsonValue } from "@bufbuild/protobuf";
import { idAt } from "@plinth/documents";
import { listVersions } from "../api/history.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { maxVersions } from "../limits.ts";
import { comparedVersions } from "../output/compared-versions.ts";
import type { ResourceFormat } from "../output/output-format.ts";
import { historyDocument, historyText } from "../output/version-text.ts";
import { warn } from "../warn.ts";
import { parseTarget } from "./targets.ts";

/** The flags of `plinth history`. */
export interface HistoryFlags {
	readonly output: ResourceFormat;
	readonly limit: number;
	/** Only versions that are older than this one. */
	readonly before?: string;
}

/** Prints the recent versions of a resource with their differences, the newest first. */
export async function history(
	session: ServerSession,
	words: readonly string[],
	{ output, limit, before = "" }: HistoryFlags,
): Promise<ExitCode> {
	const { io } = session;
	const types = await session.types();
	const { type, name } = parseTarget(words, types);
	const id = idAt(type, name, session.place);
	// The version before the last that is shown tells what that one changed.
	const response = await listVersions(session, id, limit + 1, before);
	const versions = comparedVersions(response.versions, types).slice(0, limit);
	const hasMore = response.hasMore || response.versions.length > limit;
	const shown = { ...response, hasMore, includesCreation: response.includesCreation && !hasMore };
	const document = (): JsonValue => historyDocument(shown, versions, types);
	switch (output) {
		case "json":
			io.out(`${JSON.stringify(document(), undefined, 2)}\n`);
			break;
		case "yaml":
			io.out((await import("@plinth/documents/yaml")).toYaml(document()));
			break;
		default:
			if (versions.length === 0 && before !== "") {
				io.err(`no versions before ${before} are known\n`);
				break;
			}
			io.out(historyText(shown, versions, { io, isWide: output === "wide" }));
	}
	if (hasMore) {
		const oldest = versions.at(-1)?.version.version ?? "";
		const advice = limit < maxVersions ? "raise --limit" : `add --before ${oldest} to print them`;
		warn(io, `older versions are not shown: ${advice}`);
	}
	return exitCodes.ok;
}
