import { FileError } from "../../configuration/located-yaml.ts";
import { followFiles } from "../../security/followed-files.ts";
import type { Discovery, DiscoveryContext } from "./discovery.ts";
import type { FileSource } from "./discovery-source.ts";
import { FoundServers } from "./found-servers.ts";
import { parseServerList } from "./server-list.ts";

/**
 * Reads the servers from a file, again when it changes. While it is malformed or gone, the servers from before are used, and
 * each check is a failure.
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
			apply: ({ servers }) => found.apply(parseServerList(path, servers)),
			onChecked: (problem) => (problem === "" ? found.unchanged() : found.failed(problem)),
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
