import type { ActiveSchema } from "../schema/active-schema.ts";

/** What the operators of a server are told while another schema than its own is active. */
export function supersededBy(schema: ActiveSchema & { readonly kind: "other" }): string {
	const { fingerprint, ownFingerprint } = schema;
	return `another server has activated the schema of references "${fingerprint}", and this server has "${ownFingerprint}": this server refuses all writes and holds no leases. If "${fingerprint}" is right, stop this server, or start it with the modules of the other servers. If "${ownFingerprint}" is right, restart this server. It also continues, without a restart, once "${ownFingerprint}" is active again`;
}
