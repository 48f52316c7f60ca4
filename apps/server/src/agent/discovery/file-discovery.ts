import { FileError } from "../../configuration/located-yaml.ts";
import { followFiles } from "../../security/followed-files.ts";
import type { Discovery, DiscoveryContext } from "./discovery.ts";
import type { FileSource } from "./discovery-source.ts";
import { FoundServers } from "./found-servers.ts";
import { parseServerList } from "./server-list.ts";

/**
 * Reads the servers from a file, again when it changes. Of a file that is malformed, nothing is used.
 *
 * @throws FileError if the file can't be read at the start, or is malformed.
 */
export async function discoverByFile(
	{ path, text }: FileSource,
	context: DiscoveryContext,
): Promise<Discovery> {
	const { clock, logger } = context;
	const found = new FoundServers(text, context);
	let files: Awaited<ReturnType<typeof followFiles>>;
	try {
		files = await followFiles({
			files: { servers: path },
			...{ clock, logger },
			apply: ({ servers }) => {
				try {
					found.apply(parseServerList(path, servers));
				} catch (failure) {
					found.failed(failure);
					throw failure;
				}
			},
		});
	} catch (cause) {
		throw new FileError(
			`--discover ${text}: ${cause instanceof Error ? cause.message : cause}. The file must exist when the agent starts, with one address per line, such as a:7575`,
			{ cause },
		);
	}
	return {
		status: () => found.status,
		check: () => files.check(),
		close: () => files.close(),
	};
}
