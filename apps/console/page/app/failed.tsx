import type { ErrorComponentProps } from "@tanstack/react-router";

/** The page in place of one that failed: because of a bug, or because its code could not be loaded. */
export function Failed({ error, reset }: ErrorComponentProps) {
	return (
		<div className="page">
			<h1>This page failed</h1>
			<p className="notice bad" role="alert">
				{error instanceof Error ? error.message : String(error)}
			</p>
			<p>
				If the server was updated, load the console again.{" "}
				<button type="button" onClick={() => location.reload()}>
					Load again
				</button>{" "}
				<button type="button" onClick={reset}>
					Try again
				</button>
			</p>
		</div>
	);
}
