import { Link, Outlet, useLocation, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { HelpDialog } from "../palette/help-dialog.tsx";
import { Palette } from "../palette/palette.tsx";
import { useConnection } from "./connection.ts";
import { actionOf } from "./keyboard.ts";
import { Navigation } from "./navigation.tsx";
import { pageTitle } from "./page-title.ts";
import { toggleTheme } from "./theme.ts";

/** What every page has: the header, the navigation and the dialogs. */
export function Shell() {
	const [dialog, setDialog] = useState<"palette" | "help">();
	useShortcuts(setDialog);
	useFocusOnNavigation();
	const { pathname } = useLocation();
	useEffect(() => {
		document.title = pageTitle(pathname);
	}, [pathname]);
	return (
		<div className="shell">
			<button type="button" className="skip" onClick={focusMain}>
				Skip to the page
			</button>
			<Header onPalette={() => setDialog("palette")} onHelp={() => setDialog("help")} />
			<Navigation />
			<main id="main" tabIndex={-1}>
				<Outlet />
			</main>
			{dialog === "palette" && <Palette onClose={() => setDialog(undefined)} />}
			{dialog === "help" && <HelpDialog onClose={() => setDialog(undefined)} />}
		</div>
	);
}

/** Not a link: the fragment of the URL is the route. */
function focusMain(): void {
	document.getElementById("main")?.focus();
}

function Header({
	onPalette,
	onHelp,
}: {
	readonly onPalette: () => void;
	readonly onHelp: () => void;
}) {
	const { session } = useConnection();
	return (
		<header className="top">
			<Link to="/" className="brand">
				<svg viewBox="0 0 32 32" aria-hidden="true">
					<path d="M8 23h16v3H8zM10 18h12v3H10zM12 6h8v10h-8z" />
				</svg>
				Plinth
			</Link>
			<span className="server muted">{location.host}</span>
			<button type="button" className="search-button" onClick={onPalette}>
				<span>Go to a type, resource or action</span> <kbd>Ctrl K</kbd>
			</button>
			<button type="button" onClick={toggleTheme}>
				Theme
			</button>
			<button type="button" onClick={onHelp} aria-label="Help">
				?
			</button>
			{session.token !== "" && (
				<button type="button" onClick={() => session.signOut()}>
					Sign out
				</button>
			)}
		</header>
	);
}

function useShortcuts(open: (dialog: "palette" | "help") => void): void {
	useEffect(() => {
		const onKey = (event: KeyboardEvent) => {
			const isTyping =
				event.target instanceof HTMLInputElement ||
				event.target instanceof HTMLSelectElement ||
				event.target instanceof HTMLTextAreaElement ||
				// An editor is in a shadow root, which is the target here.
				(event.target instanceof Element && event.target.shadowRoot !== null);
			const action = actionOf(event, isTyping);
			if (action === undefined || document.querySelector("dialog[open]") !== null) {
				return;
			}
			if (action !== "filter") {
				event.preventDefault();
				open(action);
				return;
			}
			const filter = document.querySelector<HTMLInputElement>("input[data-filter]");
			if (filter !== null) {
				event.preventDefault();
				filter.focus();
				filter.select();
			}
		};
		document.addEventListener("keydown", onKey);
		return () => document.removeEventListener("keydown", onKey);
	}, [open]);
}

/** Readers of screens continue at the page that a link leads to. */
function useFocusOnNavigation(): void {
	const router = useRouter();
	const path = useRef(router.state.location.pathname);
	useEffect(
		() =>
			router.subscribe("onResolved", ({ toLocation }) => {
				if (toLocation.pathname !== path.current) {
					path.current = toLocation.pathname;
					document.getElementById("main")?.focus({ preventScroll: true });
				}
			}),
		[router],
	);
}
