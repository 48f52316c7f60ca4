import { documentOf, type KnownTypes, waitsOf } from "@plinth/documents";
import { toYaml } from "@plinth/documents/yaml";
import type { Origin, Resource } from "@plinth/proto";
import type {
	Reconcile,
	Server,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type { Event } from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { displayName, isMarkedForDeletion } from "@plinth/resource";
import { listReconciles } from "../api/controllers.ts";
import { listEvents } from "../api/events.ts";
import { readResource } from "../api/read-resources.ts";
import { planDeletion } from "../api/references.ts";
import { checkOneRegion } from "../api/regions.ts";
import type { ServerSession } from "../api/server-session.ts";
import { shortDuration } from "../configuration/duration.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import type { Io } from "../io.ts";
import { conditionsTable } from "../output/conditions-table.ts";
import { reportedReasonsOf } from "../output/deletion-reasons.ts";
import { eventsSection } from "../output/event-cells.ts";
import { resourceName } from "../output/print-resources.ts";
import { printable } from "../output/printable.ts";
import { reconcilesTable } from "../output/reconcile-cells.ts";
import { createdAtMs } from "../output/resource-table.ts";
import { section } from "../output/section.ts";
import { warnOfMissing } from "./missing-servers.ts";
import { parseNamedTargets } from "./targets.ts";

/** The flags of `plinth describe`. */
export interface DescribeFlags {
	/** The region whose copies are described. */
	readonly region?: string;
}

/** Prints the resources that the words name in detail. */
export async function describeAll(
	session: ServerSession,
	words: readonly string[],
	{ region }: DescribeFlags,
): Promise<ExitCode> {
	const { io } = session;
	checkOneRegion(region);
	const types = await session.types();
	const asked: Server[] = [];
	let separator = "";
	for (const target of parseNamedTargets(words, types)) {
		for (const name of target.names) {
			const resource = await readResource(session, target.type, name, region);
			const related = resource.id?.region ? nothing : await relatedTo(resource, session);
			asked.push(...related.servers);
			io.out(separator + describe(resource, related, types, io));
			separator = "\n";
		}
	}
	warnOfMissing(asked, io);
	return exitCodes.ok;
}

async function relatedTo(resource: Resource, session: ServerSession): Promise<Related> {
	return {
		owned: await ownedBy(resource, session),
		waits: await waitsFor(resource, session),
		...(await reconcilesOf(resource, session)),
		events: await eventsOf(resource, session),
	};
}

/** The resources that a resource owns and that the caller may read; none if the caller may not list them at all. */
async function ownedBy({ id }: Resource, session: ServerSession): Promise<readonly Resource[]> {
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

/** What its deletion waits for, if it is being deleted. */
async function waitsFor(resource: Resource, session: ServerSession): Promise<readonly string[]> {
	if (!isMarkedForDeletion(resource) || resource.id === undefined) {
		return [];
	}
	try {
		return waitsOf(await planDeletion(session, resource.id));
	} catch (error) {
		if (!(error instanceof Failure) || session.io.signal.aborted) {
			throw error;
		}
		// It is gone by now, or the server is older.
		return reportedReasonsOf(resource);
	}
}

/** The newest events of a resource, the newest last; none if the server is older. */
async function eventsOf({ id }: Resource, session: ServerSession): Promise<readonly Event[]> {
	try {
		const { events } = await listEvents(session, { ...(id && { resource: id }) }, shownEvents);
		return events.toReversed();
	} catch (error) {
		if (!(error instanceof Failure) || session.io.signal.aborted) {
			throw error;
		}
		return [];
	}
}

/** What controllers do with a resource, and the servers that were asked. */
async function reconcilesOf(
	{ id }: Resource,
	session: ServerSession,
): Promise<Pick<Related, "reconciles" | "servers">> {
	return id === undefined ? { reconciles: [], servers: [] } : listReconciles(session, id);
}

/** How many events are shown with a resource: `plinth events` shows all. */
const shownEvents = 20;

/** What is shown with a resource. */
interface Related {
	readonly owned: readonly Resource[];
	/** What its deletion waits for. */
	readonly waits: readonly string[];
	/** What controllers do with it. */
	readonly reconciles: readonly Reconcile[];
	/** The servers that were asked about them. */
	readonly servers: readonly Server[];
	readonly events: readonly Event[];
}

/** Nothing is done with a copy of another region, and it owns nothing. */
const nothing: Related = { owned: [], waits: [], reconciles: [], servers: [], events: [] };

function describe(
	resource: Resource,
	{ owned, waits, reconciles, servers, events }: Related,
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
	if (resource.origin !== undefined) {
		facts.origin = originText(resource, resource.origin);
	}
	if (isMarkedForDeletion(resource)) {
		facts.deletion = "marked for deletion";
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
		section(
			"controllers",
			reconcilesTable(
				reconciles,
				{ ...io, showServer: servers.length > 1 },
				{ heading: "CONTROLLER", of: (each) => each.controller },
			),
		),
		section("events", eventsSection(events, io)),
		section("deletion waits for", waits.map((one) => `${printable(one)}\n`).join("")),
		section("owns", owned.map((one) => `${resourceName(one)}\n`).join("")),
	].join("");
}

/** Where a copy comes from. A partition or namespace of an import has no original. */
function originText({ id }: Resource, { uid, partition, cluster, peering }: Origin): string {
	if (uid === "") {
		return `made by an import from the peering ${peering}`;
	}
	if (id?.region) {
		return `a copy of what has this name in the region ${id.region}`;
	}
	const unit = [partition, id?.tenancy?.namespace ?? "", id?.name ?? ""].filter(
		(part) => part !== "",
	);
	return id?.region
		? `a copy of ${unit.join("/")} in the region ${id.region}`
		: `a copy of ${unit.join("/")} in the cluster ${cluster}, from the peering ${peering}`;
}
