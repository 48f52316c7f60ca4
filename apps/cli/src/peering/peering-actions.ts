import { readFileSync } from "node:fs";
import { type JsonValue, toJson } from "@bufbuild/protobuf";
import {
	type ImportReport,
	type PeeringReport,
	PeeringReport_Role,
	PeeringReportSchema,
	PeeringService,
} from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import type { ServerSession } from "../api/server-session.ts";
import { shortDuration } from "../configuration/duration.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { usageFailure } from "../failure.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { type Cell, plainCell, type Row, renderTable, type TableOptions } from "../output/table.ts";
import { readFailure } from "../read-failure.ts";

/** Prints a token for another cluster. */
export async function createToken(
	session: ServerSession,
	name: string,
	flags: { readonly address?: string; readonly peerCaFile?: string },
): Promise<ExitCode> {
	const { io, settings, connection } = session;
	const caFile = flags.peerCaFile ?? settings.endpoint.caFile;
	const request = { name, address: flags.address ?? "", ca: caFile ? readCa(caFile) : "" };
	const { token } = await session.call(connection.client(PeeringService).createToken(request));
	io.out(`${token}\n`);
	return exitCodes.ok;
}

/** Uses a token of another cluster. */
export async function establish(
	session: ServerSession,
	argument: string,
	name: string,
): Promise<ExitCode> {
	const { io, connection } = session;
	const token = (argument === "-" ? await io.readStdin() : argument).trim();
	const request = { token, name };
	const { name: created } = await session.call(
		connection.client(PeeringService).establish(request),
	);
	io.out(`peering ${created} established\n`);
	return exitCodes.ok;
}

/** Prints the peerings and their imports, and the copies of other regions. */
export async function listPeerings(
	session: ServerSession,
	output: OutputFormat,
): Promise<ExitCode> {
	const { io, connection } = session;
	const { peerings } = await session.call(connection.client(PeeringService).listPeerings({}));
	if (output === "table" && peerings.length === 0) {
		io.err(
			"no peerings; in the cluster that exports, create a token with: plinth peering token NAME\n",
		);
		return exitCodes.ok;
	}
	io.out(output === "table" ? tableOf(peerings, io) : await textOf(output, peerings));
	return exitCodes.ok;
}

function readCa(file: string): string {
	try {
		return readFileSync(file, "utf8");
	} catch (cause) {
		throw usageFailure(`can't read ${file}: ${readFailure(cause)}`, { cause });
	}
}

async function textOf(
	output: Exclude<OutputFormat, "table">,
	peerings: readonly PeeringReport[],
): Promise<string> {
	const forms = (): JsonValue[] =>
		peerings.map((each) => toJson(PeeringReportSchema, each, { useProtoFieldName: true }));
	switch (output) {
		case "name":
			return peerings.map(({ name }) => `${name}\n`).join("");
		case "json":
			return `${JSON.stringify(forms(), undefined, 2)}\n`;
		case "yaml":
			return (await import("@plinth/documents/yaml")).toYaml(...forms());
	}
}

function tableOf(peerings: readonly PeeringReport[], options: TableOptions): string {
	const columns = [
		{ heading: "PEERING", cut: false },
		{ heading: "ROLE", cut: false },
		{ heading: "IMPORT", cut: false },
		{ heading: "PARTITION", cut: false, priority: 1 },
		{ heading: "STATE", cut: false },
		{ heading: "COPIES", cut: false },
		{ heading: "LEFT-OUT", cut: false },
		{ heading: "LAG", cut: false },
		{ heading: "AGE", cut: false },
		{ heading: "MESSAGE", cut: true, readableWidth: 30 },
	];
	return renderTable(columns, peerings.flatMap(rowsOf), options);
}

/** A row for each import, or one if there is none. */
function rowsOf(peering: PeeringReport): readonly Row[] {
	const { name, role, isEstablished, imports } = peering;
	const head = [plainCell(name), plainCell(roleName(role))];
	if (imports.length === 0) {
		const state: Cell = isEstablished
			? { text: "Established", tone: "good" }
			: { text: "NotEstablished", tone: "unsure" };
		const [importCell, partition, ...rest] = Array.from({ length: 7 }, () => plainCell(""));
		return [
			[...head, ...[importCell, partition, state, ...rest].filter((cell) => cell !== undefined)],
		];
	}
	return imports.map((each) => [...head, ...importCells(each)]);
}

function roleName(role: PeeringReport_Role): string {
	switch (role) {
		case PeeringReport_Role.IMPORTS:
			return "imports";
		case PeeringReport_Role.REGION:
			return "region";
		default:
			return "exports";
	}
}

function importCells(report: ImportReport): Row {
	const { name, partition, state, copies, leftOutTotal, leftOut, lagMs, ageMs, message } = report;
	const total = Object.values(copies).reduce((sum, count) => sum + count, 0n);
	const [first] = leftOut;
	const why =
		first &&
		`${[first.type, first.namespace, first.name].filter(Boolean).join(" ")}: ${first.reason}`;
	return [
		...[plainCell(name), plainCell(partition)],
		{ text: state, tone: state === "Streaming" ? "good" : "bad" },
		plainCell(String(total)),
		{ text: String(leftOutTotal), tone: leftOutTotal > 0n ? "bad" : "plain" },
		plainCell(lagMs < 0n ? "never complete" : shortDuration(Number(lagMs))),
		plainCell(ageMs < 0n ? "never" : shortDuration(Number(ageMs))),
		plainCell(message || (why ?? "")),
	];
}
