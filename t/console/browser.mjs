// A browser for the tests of the console: pages that somebody is logged in at,
// what is wrong with them, and a line of JSON for each check.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import puppeteer from 'puppeteer-core'

export const URL_BASE = process.env.ENTITYAPI_URL
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const PATIENCE = 1000 * Number(process.env.CONSOLE_PATIENCE ?? 40)

/** How much slower than usual the machine may be. */
export const SLOWNESS = Number(process.env.CONSOLE_SLOWNESS ?? 1)

/** What would do something if it were ever read as markup. */
export const SCRIPT = '<img src=x onerror="window.struck=1"><script>window.struck=1</script>'

export async function check(name, action) {
  try {
    await action()
    console.log(JSON.stringify({ name, ok: true }))
  } catch (error) {
    console.log(JSON.stringify({ name, ok: false, detail: error.stack }))
  }
}

export const skip = (name, why) => console.log(JSON.stringify({ name, skip: why }))

export const launch = () => puppeteer.launch({
  executablePath: process.env.CONSOLE_BROWSER,
  headless: true,
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--lang=en-US']
})

/** A request without the browser; that of a SuperAdmin in the tenant that api.tenants has for the token. */
export async function api(method, path, { token, body, status, atomic } = {}) {
  const isApi = path.startsWith('/api/')
  const type = (isApi ? 'application/vnd.api+json' : 'application/json') + (atomic ? ';ext="https://jsonapi.org/ext/atomic"' : '')
  const tenant = isApi ? api.tenants.get(token) : undefined
  const answer = await fetch(URL_BASE + path, {
    method,
    headers: {
      Accept: `${type}, application/json`, 'Content-Type': type,
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
      ...(tenant ? { 'X-Tenant-Id': tenant } : {})
    },
    body: body === undefined ? undefined : JSON.stringify(body)
  })
  const text = await answer.text()
  if (status ? answer.status !== status : answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text === '' ? null : JSON.parse(text)
}

api.tenants = new Map()

export const login = async ({ username, password }) => (await api('POST', '/auth/login', { body: { username, password } })).accessToken

/** One tab of somebody, in a storage of its own. */
export class Tab {
  static async open(browser, { width = 1280, height = 800 } = {}) {
    const tab = new Tab()
    tab.context = await browser.createBrowserContext()
    tab.page = await tab.context.newPage()
    tab.wrong = []
    await tab.page.setViewport({ width, height })
    tab.page.setDefaultTimeout(PATIENCE)
    // a violation is told by the browser whatever the page does
    tab.page.on('console', (message) => { if (/Content Security Policy|Refused to/i.test(message.text())) tab.wrong.push(message.text()) })
    tab.page.on('pageerror', (error) => tab.wrong.push(error.stack ?? String(error)))
    tab.page.on('dialog', (dialog) => { tab.wrong.push(`a dialog of script: ${dialog.message()}`); dialog.dismiss() })
    return tab
  }

  static async as(browser, user, options) {
    const tab = await Tab.open(browser, options)
    await tab.load()
    await tab.login(user)
    return tab
  }

  async load(path = '/console/') {
    await this.page.goto(URL_BASE + path)
    await this.see('h1')
  }

  async login({ username, password }) {
    await this.fill('username', username)
    await this.fill('password', password)
    await this.click('button', 'Log in')
    await this.see('.frame h1')
  }

  see(selector) { return this.page.waitForSelector(selector, { visible: true }) }

  gone(selector) { return this.page.waitForSelector(selector, { hidden: true }) }

  /** Waits until a text is somewhere, or in what a selector names. */
  says(text, selector = 'body') {
    return this.page.waitForFunction((wanted, place) =>
      [...document.querySelectorAll(place)].some((node) => node.innerText.replace(/\s+/g, ' ').includes(wanted)), {}, text, selector)
      .catch(async (error) => {
        const seen = await this.text('body')
        throw new Error(`"${text}" is not in ${selector}: ${error.message}\n${seen.slice(0, 1500)}`)
      })
  }

  text(selector) { return this.page.$eval(selector, (node) => node.innerText) }

  texts(selector) { return this.page.$$eval(selector, (nodes) => nodes.map((node) => node.innerText.trim())) }

  /** By what a screen reader would say. */
  async click(role, name) {
    await this.page.locator(`::-p-aria([name="${name}"][role="${role}"])`).setTimeout(PATIENCE).click()
  }

  async fill(name, text) {
    const node = await this.see(`[name="${name}"]`)
    await node.evaluate((one) => { one.value = ''; one.focus() })
    await node.type(text)
  }

  choose(selector, value) { return this.page.select(selector, value) }

  /** Chooses in a combobox by keyboard, of what a text finds; other boxes keep the list of what they found. */
  async pick(selector, text) {
    const box = await this.see(selector)
    await box.focus()
    await box.type(text)
    await this.page.waitForFunction((of, at) => {
      const list = document.getElementById(document.querySelector(at).getAttribute('aria-controls'))
      return !list.hidden && list.querySelector('[id]')?.innerText.includes(of)
    }, {}, text, selector)
    await this.page.keyboard.press('ArrowDown')
    await this.page.keyboard.press('Enter')
    await this.page.waitForFunction((at) => !document.querySelector(at)?.value, {}, selector)
  }

  /**
   * Has downloads go to a folder. Answers with a function that waits for one
   * of a name and gives its text. A file of that name is there, and empty,
   * before the browser moves what it has written to it: it says itself when
   * that is done.
   */
  async savesTo(folder) {
    const client = await this.page.createCDPSession()
    const names = new Map()
    const states = new Map()
    client.on('Browser.downloadWillBegin', ({ guid, suggestedFilename }) => names.set(guid, suggestedFilename))
    client.on('Browser.downloadProgress', ({ guid, state }) => states.set(names.get(guid), state))
    await client.send('Browser.setDownloadBehavior',
      { behavior: 'allow', downloadPath: folder, browserContextId: this.context.id, eventsEnabled: true })
    return async (name) => {
      for (const end = Date.now() + PATIENCE; states.get(name) !== 'completed'; await new Promise((resolve) => setTimeout(resolve, 50))) {
        assert.ok(Date.now() < end, `the download of ${name}: ${states.get(name) ?? 'none has begun'}`)
      }
      return readFileSync(join(folder, name), 'utf8')
    }
  }

  /** Goes to a page of the console, and waits until it is there. */
  async go(path, heading) {
    await this.page.evaluate((to) => {
      if (location.hash === to) return null
      const gone = new Promise((resolve) => addEventListener('hashchange', resolve, { once: true }))
      location.hash = to
      return gone.then(() => null)
    }, `#/${path}`)
    await this.shown()
    if (heading) await this.says(heading, 'h1')
  }

  /** The page that was gone to is there. */
  shown() {
    return this.page.waitForFunction(() => document.querySelector('#page')?.getAttribute('aria-busy') === 'false')
  }

  async quiet() {
    await this.shown()
    await this.page.waitForNetworkIdle({ idleTime: 60, timeout: PATIENCE }).catch(() => {})
  }

  /** How much has moved by itself since the last time, as browsers measure it. */
  shifts() {
    return this.page.evaluate(async () => {
      globalThis.moved ??= { sum: 0, observer: new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => { globalThis.moved.sum += value })) }
      globalThis.moved.observer.observe({ type: 'layout-shift' })
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
      const { sum } = globalThis.moved
      globalThis.moved.sum = 0
      return sum
    })
  }

  /** What axe finds that is serious. */
  async audit(name, rules) {
    if (!await this.page.evaluate(() => 'axe' in globalThis)) await this.page.evaluate(AXE)
    const found = await this.page.evaluate((runOnly) =>
      globalThis.axe.run(document, { resultTypes: ['violations'], ...(runOnly ? { runOnly } : {}) }), rules)
    const serious = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(' ')}`), [], name)
  }

  /** Nothing is wider than the window. */
  async fits() {
    const [wide, window] = await this.page.evaluate(() => [document.documentElement.scrollWidth, globalThis.innerWidth])
    assert.ok(wide <= window, `${wide} of ${window}`)
  }

  async close() {
    assert.deepEqual(this.wrong, [], 'no violation of the policy, and no failure of a script')
    await this.context.close()
  }
}
