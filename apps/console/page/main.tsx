import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
import { ConnectionProvider, connect, serverUrl } from "./app/connection.ts";
import { createQueries } from "./app/queries.ts";
import { router } from "./app/router.tsx";
import { Session } from "./app/session.ts";
import { applyTheme, storedTheme } from "./app/theme.ts";
import { typesQuery } from "./app/types-query.ts";
import { LiveProvider, startLive } from "./live/live-context.ts";
import { tableOfLink } from "./table/table-link.ts";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/parts.css";

applyTheme(storedTheme());
const session = new Session(sessionStorage);
const server = serverUrl(document.baseURI);
const connection = connect(server, session);
const queries = createQueries(session);
// All pages need them.
void queries.prefetchQuery(typesQuery(connection));
const live = startLive(server, session);
const table = tableOfLink(location.hash, innerHeight);
if (table !== undefined) {
	live.openEarly(table);
}
// The code of the page that the URL names, while the types are being read.
void router.load();
const root = document.getElementById("root");
if (root !== null) {
	createRoot(root).render(
		<StrictMode>
			<ConnectionProvider value={connection}>
				<LiveProvider value={live}>
					<QueryClientProvider client={queries}>
						<App />
					</QueryClientProvider>
				</LiveProvider>
			</ConnectionProvider>
		</StrictMode>,
	);
}
