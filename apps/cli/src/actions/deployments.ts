import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { nameOfKey } from "@plinth/documents";
import {
	type ListDeploymentsResponse_Deployment as Deployment,
	ListDeploymentsResponse_DeploymentSchema as DeploymentSchema,
	type MissingReference,
	MissingReferenceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import {
	displayDeployment,
	findDeployment,
	readDeployments,
	readMissing,
	wordFor,
} from "../api/deployments.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { countOf, missingTable } from "../output/missing-references.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { printable } from "../output/printable.ts";
import { type Cell, plainCell, renderTable, type TableOptions } from "../output/table.ts";
import { warn } from "../warn.ts";

/** Prints the deployments that a server knows. */
export async function listDeployments(
	session: ServerSession,
	output: OutputFormat,
): Promise<ExitCode> {
	const { io } = session;
	const { deployments, outdatedSince } = await readDeployments(session);
	if (outdatedSince !== undefined) {
		const since = timestampDate(outdatedSince).toISOString();
		warn(io, `no meta deployment responds to the server: this is as it was known at ${since}`);
	}
	const forms = () => deployments.map((each) => formOf(DeploymentSchema, each));
	io.out(
		output === "table"
			? tableOf(deployments, io)
			: await textOf(output, forms, deployments.map(wordFor)),
	);
	return exitCodes.ok;
}

/** Prints the references that have no target in a deployment. */
export async function describeDeployment(
	session: ServerSession,
	word: string,
	output: OutputFormat,
): Promise<ExitCode> {
	const { io } = session;
	const deployment = await findDeployment(session, word);
	const { references, hidden, total, nextPageToken } = await readMissing(session, deployment, "");
	if (output !== "table") {
		const forms = () => references.map((each) => formOf(MissingReferenceSchema, each));
		const names = [...new Set(references.map(({ holder }) => nameOfKey(holder)))];
		io.out(await textOf(output, forms, names));
		return exitCodes.ok;
	}
	const where = printable(displayDeployment(deployment));
	const counts = `${countOf(deployment.references)} to ${where}, ${total} without a target\n`;
	const note = {
		heading: "NOTE",
		textOf: ({ isKept, wrongType }: MissingReference) =>
			[...(isKept ? ["kept"] : []), ...(wrongType && [`names a ${wrongType}`])].join(", "),
	};
	const further = total - hidden - BigInt(references.length);
	const notes = [
		...(hidden > 0n ? [`${hidden} more, which you may not read`] : []),
		...(nextPageToken !== "" && further > 0n ? [`${further} more, which are not shown`] : []),
		...(total > deployment.kept ? [adviceFor(deployment)] : []),
	];
	io.out(`${counts}${missingTable(references, io, note)}${notes.map((it) => `${it}\n`).join("")}`);
	return exitCodes.ok;
}

function adviceFor(deployment: Deployment): string {
	return `Create the targets again, or see what would happen without them: plinth deployments settle ${wordFor(deployment)} --dry-run=server`;
}

function formOf<Schema extends Parameters<typeof toJson>[0]>(
	schema: Schema,
	message: Parameters<typeof toJson<Schema>>[1],
): JsonValue {
	return toJson(schema, message, { useProtoFieldName: true });
}

async function textOf(
	output: Exclude<OutputFormat, "table">,
	forms: () => readonly JsonValue[],
	names: readonly string[],
): Promise<string> {
	switch (output) {
		case "name":
			return names.map((name) => `${name}\n`).join("");
		case "json":
			return `${JSON.stringify(forms(), undefined, 2)}\n`;
		case "yaml":
			return (await import("@plinth/documents/yaml")).toYaml(...forms());
	}
}

function tableOf(deployments: readonly Deployment[], options: TableOptions): string {
	const showsKept = deployments.some(({ kept }) => kept > 0n);
	const headings = ["NAME", "SERVICE", "REGION", "VERSION", "STATE", "REFERENCES", "MISSING"];
	const columns = [...headings, ...(showsKept ? ["KEPT"] : [])].map((heading) => ({
		heading,
		cut: heading === "STATE" || heading === "NAME",
		priority: heading === "VERSION" ? 2 : heading === "REFERENCES" ? 1 : 0,
	}));
	const rows = deployments.map((each) => [
		plainCell(each.name),
		plainCell(each.service),
		plainCell(each.region),
		plainCell(each.version),
		stateCell(each),
		plainCell(String(each.references)),
		{ text: String(each.missing), tone: each.missing > each.kept ? "bad" : "plain" } as const,
		...(showsKept ? [plainCell(String(each.kept))] : []),
	]);
	const [lacking] = deployments.filter(({ missing, kept }) => missing > kept);
	const advice =
		lacking === undefined
			? ""
			: `Some references have no target: plinth deployments ${wordFor(lacking)} lists them\n`;
	return renderTable(columns, rows, options) + advice;
}

function stateCell(deployment: Deployment): Cell {
	const { isSelf, isRegistered, isDisabled, isTakingOver, successorUid } = deployment;
	const isReplaced = successorUid !== "";
	const states = [
		...(isSelf ? ["of this server"] : []),
		...(isRegistered ? [] : ["not registered"]),
		...(isReplaced ? ["replaced"] : []),
		...(isDisabled ? ["disabled"] : []),
		...(isTakingOver ? ["taking over"] : []),
	];
	const isUnsure = !isRegistered || isReplaced || isDisabled || isTakingOver;
	return { text: states.join(", ") || "registered", tone: isUnsure ? "unsure" : "good" };
}
