import type { DescService } from "@bufbuild/protobuf";
import {
	type Client,
	Code,
	ConnectError,
	createClient,
	type Interceptor,
	type Transport,
} from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { createContext, useContext } from "react";
import type { Session } from "./session.ts";

/** Calls the server that serves the page. */
export interface Connection {
	readonly session: Session;
	/** A client of one of the server's services. */
	client<Service extends DescService>(service: Service): Client<Service>;
}

/**
 * The URL of the server for a page at `<server>/console/`. The server may be below a prefix, as behind a proxy.
 *
 * @param pageUrl - the URL of the page, with anything after it.
 */
export function serverUrl(pageUrl: string): string {
	return new URL("..", pageUrl.replace(/[?#].*$/, "")).href.replace(/\/$/, "");
}

/** Connects to a server with the token of the session. */
export function connect(baseUrl: string, session: Session): Connection {
	const transport: Transport = createConnectTransport({
		baseUrl,
		useBinaryFormat: true,
		interceptors: [authorize(session)],
		fetch: (input, init) => fetch(input, { ...init, credentials: "omit", cache: "no-store" }),
	});
	return { session, client: (service) => createClient(service, transport) };
}

function authorize(session: Session): Interceptor {
	return (next) => async (request) => {
		const { token } = session;
		if (token !== "") {
			request.header.set("authorization", `Bearer ${token}`);
		}
		try {
			const response = await next(request);
			// A stream has not been accepted before its first message.
			if (!response.stream) {
				session.accepted();
			}
			return response;
		} catch (error) {
			if (ConnectError.from(error).code === Code.Unauthenticated) {
				session.refused(token);
			}
			throw error;
		}
	};
}

const ConnectionContext = createContext<Connection | undefined>(undefined);

/** Provides the connection to the components of the page. */
export const ConnectionProvider = ConnectionContext.Provider;

/** The connection of the page. */
export function useConnection(): Connection {
	const connection = useContext(ConnectionContext);
	if (connection === undefined) {
		throw new Error("the component is not within a ConnectionProvider");
	}
	return connection;
}
