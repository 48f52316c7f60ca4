import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import { PeeringSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import type { ImportRecord } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import {
	type ImportReport,
	ImportReportSchema,
	type PeeringReport,
	PeeringReport_Role,
	PeeringReportSchema,
	type PeeringService,
} from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { decodeShared, idOf, labelProblem, Partition, resourceOf } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { copyCounts } from "../import/import-store.ts";
import type { Importer } from "../import/importer.ts";
import { PeeringRecords } from "../records/peering-records.ts";
import type { RegionalCopies } from "../regional/regional-copies.ts";
import type { PeerAccess } from "../trust/peer-access.ts";
import type { PeerCredentials } from "../trust/peer-credentials.ts";
import { decodeToken, encodeToken, type PeeringToken } from "../trust/peering-token.ts";
import { newSecret } from "../trust/secrets.ts";
import { checkAddress, checkCa, Peering } from "../types.ts";
import { explainFailure } from "./explain-failure.ts";

/** Options of `createPeeringService`. */
export interface PeeringServiceOptions {
	readonly backend: StorageBackend;
	readonly access: PeerAccess;
	readonly credentials: PeerCredentials;
	readonly importer: Pick<Importer, "live" | "notStarted">;
	/** The copies of other regions, if the server is of one region of a service. */
	readonly regional: Pick<RegionalCopies, "live"> | undefined;
	/** The address at which peers reach this server, unless a request names another one. */
	readonly address: () => string;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Reads a resource with the rights of a call. @throws ConnectError. */
	readonly read: (id: ID, call: HandlerContext) => Promise<Resource>;
	/** Writes a resource with the rights of a call. @throws ConnectError. */
	readonly write: (resource: Resource, call: HandlerContext) => Promise<Resource>;
}

/** Sets peerings up, and reports on them. Callers need the rights to write or read the Peering. */
export function createPeeringService(
	options: PeeringServiceOptions,
): ServiceImpl<typeof PeeringService> {
	const { access, logger } = options;
	const explain = async <T>(work: () => Promise<T>): Promise<T> => {
		try {
			return await work();
		} catch (failure) {
			throw explainFailure(failure, logger);
		}
	};
	return {
		createToken: ({ name, address, ca }, call) =>
			explain(async () => {
				requireLabel(name);
				checked(() => {
					if (address !== "") {
						checkAddress(address, "address");
					}
					checkCa(ca, "ca");
				});
				const stored = await written(options, name, call, (known) => known);
				const secret = newSecret();
				const peeringId = stored.id?.uid ?? "";
				await access.addToken({ uid: peeringId, name }, secret);
				const reached = address || options.address();
				return { token: encodeToken({ address: reached, ca, peeringId, secret }) };
			}),
		establish: ({ name, token: text }, call) => explain(() => establish(options, name, text, call)),
		listPeerings: (_, call) => explain(async () => ({ peerings: await reports(options, call) })),
	};
}

async function establish(
	options: PeeringServiceOptions,
	requestedName: string,
	text: string,
	call: HandlerContext,
): Promise<{ readonly name: string }> {
	const token = checked(() => decodeToken(text));
	const name = requestedName || `peer-${token.peeringId.slice(-8).toLowerCase()}`;
	requireLabel(name);
	const { address, ca } = token;
	const stored = await written(options, name, call, (known) => known ?? { address, ca });
	const peering = { uid: stored.id?.uid ?? "", name, address, ca };
	try {
		await options.credentials.establish(peering, token);
	} catch (failure) {
		throw unestablished(failure, token);
	}
	// Also if nothing changes: the importer looks at peerings that are written.
	await written(options, name, call, () => ({ address, ca }));
	return { name };
}

/** The failure of the other cluster, which is not that of the caller's own token. */
function unestablished(failure: unknown, { address }: PeeringToken): unknown {
	if (!(failure instanceof ConnectError)) {
		return failure;
	}
	const isOut = failure.code === Code.Unavailable || failure.code === Code.DeadlineExceeded;
	return isOut
		? new ConnectError(
				`the other cluster can't be reached at ${address}: ${failure.rawMessage}; repeat the command within an hour after the token was created`,
				Code.Unavailable,
			)
		: new ConnectError(
				`the other cluster, at ${address}, refused: ${failure.rawMessage}`,
				Code.FailedPrecondition,
			);
}

type PeeringData = Parameters<typeof create<typeof PeeringSchema>>[1];

/** The Peering of that name, created or changed with the rights of the call. */
async function written(
	{ backend, write }: PeeringServiceOptions,
	name: string,
	call: HandlerContext,
	dataOf: (known: PeeringData) => PeeringData,
): Promise<Resource> {
	const stored = await backend.lookup(idOf(Peering, name), { consistency: "strong" });
	const data = create(PeeringSchema, dataOf(stored && { ...decodeShared(Peering, stored).data }));
	const resource = resourceOf(Peering, { id: idOf(Peering, name), data });
	if (stored !== undefined) {
		resource.metadata = { ...stored.metadata };
	}
	return write(resource, call);
}

/** What is known of the peerings that the caller may read. */
async function reports(
	options: PeeringServiceOptions,
	call: HandlerContext,
): Promise<PeeringReport[]> {
	const { backend, access, credentials, importer, runtime, read } = options;
	// Before anything is read: a caller without an identity is refused, also if there are no Peerings.
	await accessTo(read(idOf(Peering, "any"), call));
	const query = { type: Peering.type, tenancy: { partition: "", namespace: "" }, namePrefix: "" };
	const { resources } = await backend.list(query);
	const exporting = await access.peers();
	const importing = await credentials.all();
	const stored = (await new PeeringRecords(backend, runtime).all("import")).map(
		(each) => each.value,
	);
	const uids = new Set(stored.map(({ importUid }) => importUid));
	const imports = [
		...stored,
		// A full storage may have had no room for the record.
		...importer.notStarted.filter(({ importUid }) => !uids.has(importUid)),
	];
	const reported: PeeringReport[] = [];
	for (const { id } of resources) {
		if (id === undefined || (await accessTo(read(id, call))) !== "readable") {
			continue;
		}
		const dialed = importing.get(id.uid);
		const own = imports.filter(({ peeringUid }) => peeringUid === id.uid);
		reported.push(
			create(PeeringReportSchema, {
				name: id.name,
				role: dialed === undefined ? PeeringReport_Role.EXPORTS : PeeringReport_Role.IMPORTS,
				isEstablished:
					dialed === undefined
						? (exporting.get(id.uid)?.credentialHash.length ?? 0) > 0
						: dialed.credential !== "",
				cluster: dialed?.cluster ?? exporting.get(id.uid)?.cluster ?? "",
				imports: await Promise.all(own.map((each) => importReport(options, each))),
			}),
		);
	}
	const names = new Set(resources.map(({ id }) => id?.name));
	const missing = Map.groupBy(imports, ({ peering }) => peering);
	for (const [name, own] of missing) {
		// An Import that names a Peering which does not exist.
		if (!names.has(name) && (await accessTo(read(idOf(Peering, name), call))) !== "denied") {
			const reports = own.map((each) => importReport(options, each));
			const role = PeeringReport_Role.IMPORTS;
			reported.push(
				create(PeeringReportSchema, { name, role, imports: await Promise.all(reports) }),
			);
		}
	}
	return [...reported, ...(await regionReports(options, call))];
}

/** What is known of the copies of other regions, of the partitions whose names the caller may read. */
async function regionReports(
	options: PeeringServiceOptions,
	call: HandlerContext,
): Promise<PeeringReport[]> {
	const { backend, runtime, read } = options;
	const records = await new PeeringRecords(backend, runtime).all("regional");
	const regions = Map.groupBy(records, ({ value }) => value.region);
	const reported: PeeringReport[] = [];
	for (const [name, own] of [...regions].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
		const imports: ImportReport[] = [];
		for (const { value } of own) {
			// There may be no partition of that name here.
			if ((await accessTo(read(idOf(Partition, value.partition), call))) !== "denied") {
				imports.push(await importReport(options, value));
			}
		}
		if (imports.length > 0) {
			const role = PeeringReport_Role.REGION;
			imports.sort((a, b) => (a.partition < b.partition ? -1 : 1));
			reported.push(create(PeeringReportSchema, { name, role, isEstablished: true, imports }));
		}
	}
	return reported;
}

/** What a read tells of the rights of the caller: the resource can be read, could be if it existed, or can't. */
type ReadAccess = "readable" | "missing" | "denied";

/** @throws what a read fails with for other reasons. */
async function accessTo(reading: Promise<unknown>): Promise<ReadAccess> {
	try {
		await reading;
		return "readable";
	} catch (error) {
		if (error instanceof ConnectError) {
			if (error.code === Code.NotFound) {
				return "missing";
			}
			if (error.code === Code.PermissionDenied) {
				return "denied";
			}
		}
		throw error;
	}
}

/** The state of an import: as it is if this server runs it, and as it was recorded otherwise. */
async function importReport(
	{ backend, importer, regional, runtime }: PeeringServiceOptions,
	record: ImportRecord,
): Promise<ImportReport> {
	const live =
		record.region === "" ? importer.live(record.importUid) : regional?.live(record.importUid);
	const sinceMs = (ms: bigint) =>
		ms === 0n ? -1 : Math.max(0, Math.floor(runtime.clock.now() - Number(ms)));
	const counts = await copyCounts(backend, record);
	return create(ImportReportSchema, {
		name: record.import,
		export: record.export,
		partition: record.partition,
		state: live?.state ?? record.state,
		message: live?.message ?? record.message,
		lagMs: BigInt(Math.floor(live?.lagMs ?? sinceMs(record.currentMs))),
		ageMs: BigInt(Math.floor(live?.ageMs ?? sinceMs(record.heardMs))),
		copies: Object.fromEntries([...counts].map(([key, count]) => [key, BigInt(count)])),
		leftOutTotal: record.leftOutTotal,
		leftOut: [...record.leftOut],
		snapshots: record.snapshots,
		resumptions: record.resumptions,
	});
}

function requireLabel(name: string): void {
	const problem = name === "" ? "is required" : labelProblem(name);
	if (problem !== undefined) {
		throw new ConnectError(
			`name ${name === "" ? problem : `invalid: ${problem}`}`,
			Code.InvalidArgument,
		);
	}
}

/** Maps what a check throws to InvalidArgument. */
function checked<T>(check: () => T): T {
	try {
		return check();
	} catch (error) {
		throw new ConnectError(
			error instanceof Error ? error.message : String(error),
			Code.InvalidArgument,
		);
	}
}
