import type { Resource } from "@plinth/proto";
import { decodeShared } from "@plinth/resource";
import { type DeploymentInfo, takenOver } from "./environment.ts";
import { Deployment, metaService, Service } from "./meta-types.ts";

/** A deployment with the fields that only the registry needs. */
export interface RegisteredDeployment extends DeploymentInfo {
	/** Where other deployments reach it. */
	readonly address: string;
	/** The version that operators want it to switch to; empty if none. */
	readonly wantedVersion: string;
	/** The incarnation of the storage that registered. */
	readonly storageIncarnation: string;
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

/** The contents of one meta deployment. */
interface MetaContents {
	readonly deployments: Map<string, RegisteredDeployment>;
	readonly services: Map<string, RegisteredService>;
	/** All of them, as they were reported. */
	readonly resources: Map<string, Resource>;
}

/** A Deployment or a Service, and the address of the meta deployment that has reported it. */
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
}

/**
 * The merged contents of all meta deployments. Each keeps the deployments that registered with it:
 *
 *     meta in us-west2 ── iam-us-west2, devices-us-west2 ─┐
 *     meta in us-east1 ── iam-us-east1 ───────────────────┴─▶ the view
 *
 * The contents of a meta deployment stay until it reports a change. Absence proves nothing. Of several servers of one
 * meta deployment, each is a source; those that can't be followed are left out if another one is.
 */
export class RegistryView {
	readonly #contents = new Map<string, MetaContents>();
	/** The sources whose contents are left out. */
	#superseded: ReadonlySet<string> = new Set();
	/** What is looked up, made again after a change when it is needed. */
	#lookups: Lookups | undefined;

	/** Applies a change that a meta deployment, identified by its address, reports. */
	apply(source: string, resource: Resource, change: "stored" | "removed"): void {
		const contents = this.#of(source);
		const { group, kind } = resource.id?.type ?? {};
		const uid = resource.id?.uid ?? "";
		this.#lookups = undefined;
		update(contents.resources, uid, change === "stored" ? resource : undefined);
		if (group === Deployment.type.group && kind === Deployment.type.kind) {
			update(contents.deployments, uid, change === "stored" ? deploymentOf(resource) : undefined);
		} else if (group === Service.type.group && kind === Service.type.kind) {
			update(contents.services, uid, change === "stored" ? serviceOf(resource) : undefined);
		}
	}

	/** Completes a fresh snapshot of one type: removes what it does not contain. */
	retain(source: string, type: "deployments" | "services", uids: ReadonlySet<string>): void {
		const contents = this.#of(source);
		for (const uid of contents[type].keys()) {
			if (!uids.has(uid)) {
				contents[type].delete(uid);
				contents.resources.delete(uid);
				this.#lookups = undefined;
			}
		}
	}

	/** Leaves out the contents of these sources, which are older than those of others. */
	supersede(sources: ReadonlySet<string>): void {
		if (sources.symmetricDifference(this.#superseded).size > 0) {
			this.#superseded = sources;
			this.#lookups = undefined;
		}
	}

	/** Identifies the meta deployment of a source, by its own Deployment; by the address if that is not known. */
	metaOf(source: string): string {
		const own = [...(this.#contents.get(source)?.deployments.values() ?? [])].flatMap(
			({ service, uid }) => (service === metaService ? uid : []),
		);
		return own.length === 0 ? source : own.sort().join();
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

	/** The deployment that names another one as a predecessor; of several, the one that has taken over the others. */
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
		this.#lookups ??= lookupsOf(this.#visible.map(([, contents]) => contents));
		return this.#lookups;
	}

	#of(source: string): MetaContents {
		let contents = this.#contents.get(source);
		if (contents === undefined) {
			contents = { deployments: new Map(), services: new Map(), resources: new Map() };
			this.#contents.set(source, contents);
		}
		return contents;
	}
}

function lookupsOf(contents: readonly MetaContents[]): Lookups {
	const all = new Map(contents.flatMap(({ deployments }) => [...deployments]));
	const successors = new Map<string, RegisteredDeployment>();
	for (const each of all.values()) {
		const names = takenOver(each);
		for (const uid of names) {
			const other = successors.get(uid);
			if (other === undefined || names.includes(other.uid)) {
				successors.set(uid, each);
			}
		}
	}
	const services = new Map<string, string>();
	for (const { name, groups } of contents.flatMap(({ services }) => [...services.values()])) {
		for (const group of groups) {
			services.set(group, services.get(group) ?? name);
		}
	}
	const byPlace = Map.groupBy(all.values(), ({ service, region }) => placeOf(service, region));
	return { all, byPlace, successors, services };
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
	};
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
