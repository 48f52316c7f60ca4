import { ResourceLink } from "./resource-link.tsx";

/**
 * A link to the resource that a controller reconciles.
 *
 * @param key - as in `Reconcile.key` of the API: `<group>.<kind>/<partition>/<namespace>/<name>`. Shown as it is if it is not.
 */
export function ReconcileKey({ of: key }: { readonly of: string }) {
	const [, group, kind, partition, namespace, name] =
		/^([^/]+)\.([^./]+)\/([^/]*)\/([^/]*)\/([^/]+)$/.exec(key) ?? [];
	return group === undefined || kind === undefined || name === undefined ? (
		<code>{key}</code>
	) : (
		<ResourceLink
			resource={{
				type: { group, kind },
				tenancy: { partition: partition ?? "", namespace: namespace ?? "" },
				name,
			}}
		/>
	);
}
