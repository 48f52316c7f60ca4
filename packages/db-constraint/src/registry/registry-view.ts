import type { Resource } from "@plinth/proto";
import { decodeShared } from "@plinth/resource";
import { isPlanted } from "../fault-points.ts";
import { compareVersions } from "../shadow/versions.ts";
import { type DeploymentInfo, laterOf, takenOver } from "./environment.ts";
import { DeletedDeployment, Deployment, metaService, Service } from "./meta-types.ts";

/** A deployment with the fields that only the registry needs. */
export interface RegisteredDeployment extends DeploymentInfo {
	/** Where other deployments reach it. */
	readonly address: string;
	/** The version that operators want it to switch to; empty if none. */
	readonly wantedVersion: string;
	/** The incarnation of the storage that registered. */
	readonly storageIncarnation: string;
	readonly recovering: boolean;
}

/** A service, as described by its deployments. */
export interface RegisteredService {
	readonly name: string;
	readonly groups: readonly string[];
	/** The versions of its API that some deployment has announced or will. */
	readonly versions: readonly string[];
	/** The names of the services that each of them imports. */
	readonly imports: ReadonlyMap<string, readonly string[]>;
}

/** What is followed at each source. */
export type FollowedType = "deployments" | "services" | "deletions";

/** The contents of one meta deployment. */
interface MetaContents {
	readonly deployments: Map<string, RegisteredDeployment>;
	readonly services: Map<string, RegisteredService>;
	/** The uids of deleted deployments, by the uids of their records. */
	readonly deletions: Map<string, string>;
	/** The newest content of each Deployment, by uid: a restore may have brought an older one back. */
	readonly newest: Map<string, Resource>;
	/** All of them, as they were reported. */
	readonly resources: Map<string, Resource>;
}

/** A Deployment, a Service or a DeletedDeployment, and the address of the meta deployment that has reported it. */
export interface ReportedResource {
	readonly source: string;
	readonly resource: Resource;
}

/** What a registry view is asked for. */
interface Lookups {
	/** By uid. */
	readonly all: ReadonlyMap<string, RegisteredDeployment>;
	readonly byPlace: ReadonlyMap<string, readonly RegisteredDeployment[]>;
	/** By the uid of the predecessor. */
	readonly successors: ReadonlyMap<string, RegisteredDeployment>;
	/** The names of services, by the groups that they own. */
	readonly services: ReadonlyMap<string, string>;
	/** What identifies the meta deployment of each source. */
	readonly metas: ReadonlyMap<string, string>;
	/** The uids of deleted deployments. */
	readonly deleted: ReadonlySet<string>;
}

/**
 * The merged contents of all meta deployments. Each keeps the deployments that registered with it:
 *
 *     meta in us-west2 ── iam-us-west2, devices-us-west2 ─┐
 *     meta in us-east1 ── iam-us-east1 ───────────────────┴─▶ the view
 *
 * The contents of a meta deployment stay until it reports a change. Absence proves nothing. Of several servers of one
 * meta deployment, each is a source; those that can't be followed are left out if another one is. A deployment whose
 * deletion is recorded is left out, also if a meta deployment that was restored has it again.
 */
export class RegistryView {
	readonly #contents = new Map<string, MetaContents>();
	/** The sources whose contents are left out. */
	#superseded: ReadonlySet<string> = new Set();
	/** The latest versions of what some source had, and has removed, by uid. */
	readonly #removed = new Map<string, string>();
	/** What is looked up, made again after a change when it is needed. */
	#lookups: Lookups | undefined;
	#revision = 0;

	/** Grows with each change. */
	get revision(): number {
		return this.#revision;
	}

	#changed(): void {
		this.#revision += 1;
		this.#lookups = undefined;
	}

	/** Applies a change that a meta deployment, identified by its address, reports. */
	apply(source: string, resource: Resource, change: "stored" | "removed"): void {
		const contents = this.#of(source);
		const { group, kind } = resource.id?.type ?? {};
		const uid = resource.id?.uid ?? "";
		const known = contents.resources.get(uid);
		if (change === "stored" && known?.version === resource.version && resource.version !== "") {
			return;
		}
		this.#changed();
		this.#updateRemoved(change, resource, known);
		update(contents.resources, uid, change === "stored" ? resource : undefined);
		if (group === Deployment.type.group && kind === Deployment.type.kind) {
			update(contents.deployments, uid, change === "stored" ? deploymentOf(resource) : undefined);
			const isNewest = resource.generation >= (contents.newest.get(uid)?.generation ?? "");
			if (change === "removed" || isNewest) {
				update(contents.newest, uid, change === "stored" ? resource : undefined);
			}
		} else if (group === Service.type.group && kind === Service.type.kind) {
			update(contents.services, uid, change === "stored" ? serviceOf(resource) : undefined);
		} else if (group === DeletedDeployment.type.group && kind === DeletedDeployment.type.kind) {
			update(contents.deletions, uid, change === "stored" ? deletedUidOf(resource) : undefined);
		}
	}

	/**
	 * Completes a fresh snapshot of one type: removes what it does not contain. Nothing is removed that a meta deployment
	 * may lack because it was restored, and no record of a deletion ever.
	 */
	retain(source: string, type: FollowedType, uids: ReadonlySet<string>): void {
		const contents = this.#of(source);
		const isRecovering =
			this.recovering([source]) !== undefined &&
			!isPlanted("forget what a restored registry lacks");
		if (type === "deletions" || isRecovering) {
			return;
		}
		for (const uid of contents[type].keys()) {
			if (!uids.has(uid)) {
				this.#updateRemoved("removed", contents.resources.get(uid));
				contents[type].delete(uid);
				contents.resources.delete(uid);
				contents.newest.delete(uid);
				this.#changed();
			}
		}
	}

	#updateRemoved(
		change: "stored" | "removed",
		...versions: readonly (Resource | undefined)[]
	): void {
		for (const { id, version } of versions.flatMap((each) => each ?? [])) {
			const uid = id?.uid ?? "";
			const before = this.#removed.get(uid) ?? "";
			const latest = compareVersions(version, before) > 0 ? version : before;
			update(this.#removed, uid, change === "stored" ? undefined : latest);
		}
	}

	/**
	 * Whether this view has had a resource, and has seen that it was removed. One that it never had may exist, and so may one
	 * with a later version: it was given back since.
	 */
	hasRemoved({ id, version }: Pick<Resource, "id" | "version">): boolean {
		const removed = this.#removed.get(id?.uid ?? "");
		return removed !== undefined && compareVersions(version, removed) <= 0;
	}

	/** Leaves out the contents of these sources, which are older than those of others. */
	supersede(sources: ReadonlySet<string>): void {
		if (sources.symmetricDifference(this.#superseded).size > 0) {
			this.#superseded = sources;
			this.#changed();
		}
	}

	/**
	 * Identifies the meta deployment of a source, by its own Deployments: the one before a restore and the one afterwards
	 * are the same. By the address if it has none.
	 */
	metaOf(source: string): string {
		return this.#current.metas.get(source) ?? source;
	}

	/** The sources of the same meta deployments as these. */
	sourcesWith(sources: readonly string[]): readonly string[] {
		const metas = new Set(sources.map((source) => this.metaOf(source)));
		const others = [...this.#contents.keys()].filter((source) => metas.has(this.metaOf(source)));
		return [...new Set([...sources, ...others])];
	}

	/** This view together with what else was reported, of which this one may know a later change. Nothing is left out. */
	with(others: Iterable<ReportedResource>): RegistryView {
		const all = new RegistryView();
		for (const { source, resource } of others) {
			all.apply(source, resource, "stored");
		}
		for (const [source, { newest, resources }] of this.#contents) {
			for (const resource of [...newest.values(), ...resources.values()]) {
				all.apply(source, resource, "stored");
			}
		}
		return all;
	}

	/** The Deployment by which some of these sources say that their meta deployment was restored and is not complete. */
	recovering(sources: readonly string[]): RegisteredDeployment | undefined {
		return recoveringOf(sources.flatMap((source) => metasOf(this.#contents.get(source))));
	}

	/** The Deployments that some of these sources have reported: of each, the newest. */
	deploymentsAt(sources: readonly string[]): readonly Resource[] {
		const newest = new Map<string, Resource>();
		for (const source of sources) {
			for (const [uid, resource] of this.#contents.get(source)?.newest ?? []) {
				if (resource.generation >= (newest.get(uid)?.generation ?? "")) {
					newest.set(uid, resource);
				}
			}
		}
		return [...newest.values()].filter(({ id }) => !this.isDeleted(id?.uid ?? ""));
	}

	/** Whether a source has reported both a Deployment and the record of its deletion. */
	hasDeleted(source: string): boolean {
		const { deployments, deletions } = this.#contents.get(source) ?? {};
		const deleted = [...(deployments?.keys() ?? [])].filter((uid) => this.isDeleted(uid));
		return (
			deleted.length > 0 && [...(deletions?.values() ?? [])].some((uid) => deleted.includes(uid))
		);
	}

	/** The records of deletions that some of these sources have reported. */
	deletionsAt(sources: readonly string[]): readonly Resource[] {
		return sources.flatMap((source) => {
			const { deletions, resources } = this.#contents.get(source) ?? {};
			return [...(deletions?.keys() ?? [])].flatMap((uid) => resources?.get(uid) ?? []);
		});
	}

	/** Whether some meta deployment has reported the record of the deletion of a deployment. */
	isDeleted(uid: string): boolean {
		return this.#current.deleted.has(uid);
	}

	get #visible(): readonly (readonly [string, MetaContents])[] {
		return [...this.#contents].filter(([source]) => !this.#superseded.has(source));
	}

	/** All that was reported. */
	*reported(): Iterable<ReportedResource> {
		for (const [source, { resources }] of this.#visible) {
			for (const resource of resources.values()) {
				yield { source, resource };
			}
		}
	}

	/** The meta deployment that has reported the deployment with this uid. */
	sourceOf(uid: string): string | undefined {
		for (const [source, { deployments }] of this.#visible) {
			if (deployments.has(uid)) {
				return source;
			}
		}
		return undefined;
	}

	/** All deployments, by uid. */
	deployments(): ReadonlyMap<string, RegisteredDeployment> {
		return this.#current.all;
	}

	/** The deployment that names another one as a predecessor; of several, the last one: see `laterOf`. */
	successorOf(uid: string): RegisteredDeployment | undefined {
		return this.#current.successors.get(uid);
	}

	/**
	 * The responsible deployment: never one that was taken over by a successor; preferably one that is not
	 * disabled; of several, the one that registered last.
	 */
	find(service: string, region: string): RegisteredDeployment | undefined {
		const candidates = this.#current.byPlace.get(placeOf(service, region)) ?? [];
		const superseded = new Set(candidates.flatMap(takenOver));
		const [first] = candidates
			.filter(({ uid }) => !superseded.has(uid))
			.sort((a, b) => Number(a.disabled) - Number(b.disabled) || (a.uid < b.uid ? 1 : -1));
		return first;
	}

	/** The versions in which a service is described; `undefined` if it is not known. */
	versionsOf(service: string): readonly string[] | undefined {
		const described = this.#visible.flatMap(([, { services }]) =>
			[...services.values()].filter(({ name }) => name === service),
		);
		return described.length === 0
			? undefined
			: [...new Set(described.flatMap(({ versions }) => versions))].sort();
	}

	/** The services that a version of a service imports; `undefined` if that version is not known. */
	importsOf(service: string, version: string): ReadonlySet<string> | undefined {
		const known = this.#visible.flatMap(([, { services }]) =>
			[...services.values()].flatMap(({ name, imports }) =>
				name === service && imports.has(version) ? [imports.get(version) ?? []] : [],
			),
		);
		return known.length === 0 ? undefined : new Set(known.flat());
	}

	/** The name of the service that owns a group. */
	serviceOfGroup(group: string): string | undefined {
		return this.#current.services.get(group);
	}

	get #current(): Lookups {
		this.#lookups ??= lookupsOf(
			this.#visible.map(([, contents]) => contents),
			this.#contents,
		);
		return this.#lookups;
	}

	#of(source: string): MetaContents {
		let contents = this.#contents.get(source);
		if (contents === undefined) {
			contents = {
				deployments: new Map(),
				services: new Map(),
				deletions: new Map(),
				newest: new Map(),
				resources: new Map(),
			};
			this.#contents.set(source, contents);
		}
		return contents;
	}
}

function lookupsOf(
	contents: readonly MetaContents[],
	sources: ReadonlyMap<string, MetaContents>,
): Lookups {
	const deleted = new Set([...sources.values()].flatMap((each) => [...each.deletions.values()]));
	const metas = identifiedMetas(sources);
	const metaOfContents = new Map([...sources].map(([source, each]) => [each, metas.get(source)]));
	const all = newestOf(contents, deleted, (each) => metaOfContents.get(each));
	const successors = new Map<string, RegisteredDeployment>();
	for (const each of all.values()) {
		for (const uid of takenOver(each)) {
			successors.set(uid, laterOf(each, successors.get(uid) ?? each));
		}
	}
	const services = new Map<string, string>();
	for (const { name, groups } of contents.flatMap(({ services }) => [...services.values()])) {
		for (const group of groups) {
			services.set(group, services.get(group) ?? name);
		}
	}
	const byPlace = Map.groupBy(all.values(), ({ service, region }) => placeOf(service, region));
	return { all, byPlace, successors, services, deleted, metas };
}

/**
 * Of several servers of a meta deployment that can't be followed, one may have reported a Deployment later than others. Versions
 * of two meta deployments, of which a deployment has changed from one to the other, can't be compared.
 */
function newestOf(
	contents: readonly MetaContents[],
	deleted: ReadonlySet<string>,
	metaOf: (each: MetaContents) => string | undefined,
): ReadonlyMap<string, RegisteredDeployment> {
	const newest = new Map<string, RegisteredDeployment>();
	const found = new Map<string, { meta: string | undefined; resource: Resource | undefined }>();
	for (const each of contents) {
		const meta = metaOf(each);
		for (const [uid, deployment] of each.deployments) {
			const resource = each.resources.get(uid);
			const before = found.get(uid);
			const isNewer =
				before === undefined ||
				(meta !== undefined &&
				before.meta !== undefined &&
				meta !== before.meta &&
				!isPlanted("compare versions of different meta deployments")
					? (resource?.generation ?? "") >= (before.resource?.generation ?? "")
					: compareVersions(resource?.version ?? "", before.resource?.version ?? "") >= 0);
			if (!deleted.has(uid) && isNewer) {
				newest.set(uid, deployment);
				found.set(uid, { meta, resource });
			}
		}
	}
	return newest;
}

/** The Deployment of these by which its meta deployment says that it was restored and is not complete. */
export function recoveringOf(
	deployments: readonly RegisteredDeployment[],
): RegisteredDeployment | undefined {
	// It is complete permanently once one source says so: the others may be behind, and a later restore has another uid.
	const settled = new Set(
		deployments.flatMap((each) => [
			...(each.service === metaService ? takenOver(each) : []),
			...(each.recovering ? [] : [each.uid]),
		]),
	);
	return deployments.find(({ recovering, uid }) => recovering && !settled.has(uid));
}

/** The Deployment of these that is the present one of their meta deployment itself. */
export function metaOf(
	deployments: readonly RegisteredDeployment[],
): RegisteredDeployment | undefined {
	const metas = deployments.filter(({ service }) => service === metaService);
	const before = new Set(metas.flatMap(takenOver));
	return metas.find(({ uid }) => !before.has(uid));
}

/** The Deployments of a meta deployment in its own contents: after a restore several. */
function metasOf(contents: MetaContents | undefined): readonly RegisteredDeployment[] {
	const deployments = [...(contents?.deployments.values() ?? [])];
	return deployments.filter(({ service }) => service === metaService);
}

/** The smallest uid of each meta deployment and its predecessors, by its sources. */
function identifiedMetas(sources: ReadonlyMap<string, MetaContents>): ReadonlyMap<string, string> {
	const related = [...sources].flatMap(([source, contents]) => {
		const uids = new Set(metasOf(contents).flatMap((each) => [each.uid, ...takenOver(each)]));
		return uids.size === 0 ? [] : [{ uids, sources: [source] }];
	});
	for (let at = related.length - 1; at > 0; at--) {
		const each = related[at];
		const other = related.slice(0, at).find(({ uids }) => each && !uids.isDisjointFrom(each.uids));
		for (const uid of (other && each?.uids) ?? []) {
			other?.uids.add(uid);
		}
		other?.sources.push(...(each?.sources ?? []));
		if (other !== undefined) {
			related.splice(at, 1);
		}
	}
	return new Map(
		related.flatMap(({ uids, sources }) => {
			const [id = ""] = [...uids].sort();
			return sources.map((source) => [source, id] as const);
		}),
	);
}

function placeOf(service: string, region: string): string {
	return `${service}@${region}`;
}

/** The fields of a Deployment resource. */
export function deploymentOf(resource: Resource): RegisteredDeployment {
	const { data } = decodeShared(Deployment, resource);
	return {
		uid: resource.id?.uid ?? "",
		name: resource.id?.name ?? "",
		service: data.service,
		region: data.region,
		version: data.currentVersion,
		disabled: data.disabled,
		predecessorUid: data.predecessorUid,
		otherPredecessorUids: data.otherPredecessorUids,
		address: data.address,
		wantedVersion: data.wantedVersion,
		storageIncarnation: data.storageIncarnation,
		established: data.predecessorUid === "" || data.established,
		recovering: data.recovering,
	};
}

function deletedUidOf(resource: Resource): string {
	return decodeShared(DeletedDeployment, resource).data.uid;
}

function serviceOf(resource: Resource): RegisteredService {
	const { groups, versions } = decodeShared(Service, resource).data;
	return {
		name: resource.id?.name ?? "",
		groups,
		versions: versions.map(({ version }) => version),
		imports: new Map(
			versions.map(({ version, imports }) => [version, imports.map(({ service }) => service)]),
		),
	};
}

function update<Value>(map: Map<string, Value>, uid: string, value: Value | undefined): void {
	if (value === undefined) {
		map.delete(uid);
	} else {
		map.set(uid, value);
	}
}
