import { useQuery } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useSyncExternalStore } from "react";
import { ErrorNotice } from "../parts/error-notice.tsx";
import { useConnection } from "./connection.ts";
import { router } from "./router.tsx";
import { SignIn } from "./sign-in.tsx";
import { typesQuery } from "./types-query.ts";

/** The page: its routes, or the form to sign in. */
export function App() {
	const connection = useConnection();
	const { session } = connection;
	const state = useSyncExternalStore(session.subscribe, () => session.state);
	const { error, refetch } = useQuery({
		...typesQuery(connection),
		enabled: state.kind !== "closed",
	});
	if (state.kind === "closed") {
		return <SignIn reason={state.reason} onToken={(token) => session.signIn(token)} />;
	}
	if (state.kind === "open") {
		return <RouterProvider router={router} />;
	}
	return (
		<main className="center">
			{error === null ? (
				<p className="muted">Connecting…</p>
			) : (
				<ErrorNotice error={error} what="the server" onRetry={() => void refetch()} />
			)}
		</main>
	);
}
