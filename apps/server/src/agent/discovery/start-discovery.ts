import type { Discovery, DiscoveryContext } from "./discovery.ts";
import type { DiscoverySource } from "./discovery-source.ts";
import { discoverByDns } from "./dns-discovery.ts";
import { discoverByFile } from "./file-discovery.ts";

/**
 * Begins to find servers. A name is looked up in the background; a file was read when this resolves.
 *
 * @throws FileError if the file can't be read or is malformed.
 */
export async function startDiscovery(
	source: DiscoverySource,
	context: DiscoveryContext,
): Promise<Discovery> {
	return source.kind === "file" ? discoverByFile(source, context) : discoverByDns(source, context);
}
