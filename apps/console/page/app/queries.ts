import { Code, ConnectError } from "@connectrpc/connect";
import { QueryClient } from "@tanstack/react-query";
import type { Session } from "./session.ts";

/** The cache of what was read with single calls. It is cleared when the session changes. */
export function createQueries(session: Session): QueryClient {
	const client = new QueryClient({
		defaultOptions: {
			queries: {
				retry: (failures, error) => failures < 3 && isTransient(error),
				staleTime: 10_000,
			},
		},
	});
	session.subscribe(() => {
		if (session.state.kind === "closed") {
			client.clear();
		}
	});
	return client;
}

/** Whether the same call may succeed later. */
function isTransient(error: Error): boolean {
	const { code } = ConnectError.from(error);
	return [Code.Unavailable, Code.Unknown, Code.Internal, Code.DeadlineExceeded].includes(code);
}
