import type { Random } from "@plinth/runtime";
import { type SeededRuntime, seededRuntime } from "@plinth/runtime/testing";
import type { Deployment } from "./deployment.ts";
import { type Habits, habitNames, habits } from "./habits.ts";
import { MetaDeployment } from "./meta.ts";
import { Observer } from "./observer.ts";
import { Story } from "./story.ts";
import { calm, drawWeather, type Weather } from "./weather.ts";

/** What everything in a simulation shares. */
export class World {
	readonly runtime: SeededRuntime;
	readonly deployments: Deployment[] = [];
	readonly meta: MetaDeployment;
	readonly story: Story;
	readonly observer: Observer;
	/** How many commits of the last deployment are held now. */
	held = 0;
	/** Whether schemas are switched. */
	readonly switches: boolean;
	weather: Weather;
	readonly habits: Habits;
	/** Whether servers hear of what others have committed some time later. */
	readonly isLagging: boolean;

	constructor(seed: number, tells: boolean) {
		this.runtime = seededRuntime({ seed, maxSteps: 300_000 });
		this.story = new Story(this.runtime.clock, tells);
		this.observer = new Observer(this.story);
		this.habits = habits[this.pick(habitNames)];
		this.switches = this.happens(0.25);
		this.isLagging = this.happens(0.4);
		this.weather = drawWeather(this.runtime.random, this.habits);
		this.meta = new MetaDeployment(this);
	}

	get random(): Random {
		return this.runtime.random;
	}

	/** From now on nothing goes wrong. */
	clearUp(): void {
		this.weather = calm;
		this.story.tell("world", () => "nothing goes wrong from now on");
	}

	/** Whether something that has this chance happens now. */
	happens(chance: number): boolean {
		return chance > 0 && this.random.next() < chance;
	}

	/** A whole number from 0 on, below the limit. */
	below(limit: number): number {
		return Math.floor(this.random.next() * limit);
	}

	/** One of several. */
	pick<const Items extends readonly [unknown, ...unknown[]]>(items: Items): Items[number] {
		return items[this.below(items.length)] ?? items[0];
	}

	/** Some of the time that steps and messages take: turns, seldom seconds or minutes. */
	async someTime(): Promise<void> {
		while (this.happens(this.weather.turn)) {
			await this.runtime.scheduler.pause();
		}
		if (this.happens(this.weather.slow)) {
			await this.pass(this.random.next() * this.pick([50, 3_000, 20_000, 90_000]));
		}
	}

	/** A commit may be under way for a while: users can tell, and make use of it. */
	async hold(): Promise<void> {
		if (this.happens(this.weather.held)) {
			this.held += 1;
			await this.pass(this.random.next() * this.pick([300, 3_000, 10_000]));
			this.held -= 1;
		}
	}

	/** Time passes, for nobody in particular. */
	pass(ms: number): Promise<void> {
		return new Promise((resolve) => this.runtime.clock.setTimer(ms, resolve));
	}
}
