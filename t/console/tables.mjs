// Tables: sort, filter, columns, pages by cursor, totals; and files of rows.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SCRIPT, api, check } from './browser.mjs'

const MANY = 60

/** Enough rows for three pages, by whoever may write. */
export async function manyRows(token, example, ids) {
  const { linked: of } = example
  const letters = (i) => String.fromCharCode(65 + Math.floor(i / 26), 65 + i % 26)
  const operations = Array.from({ length: MANY }, (none, i) => {
    const { relationships = {}, ...attributes } = of.make(`R-${String(i).padStart(2, '0')}`, ids, `R${letters(i)}`)
    const links = Object.entries(relationships).map(([name, [type, id]]) => [name, { data: { type, id } }])
    return { op: 'add', data: { type: of.collection.toLowerCase(), attributes, relationships: Object.fromEntries(links) } }
  })
  await api('POST', '/api/v1/operations', { token, atomic: true, body: { 'atomic:operations': operations } })
}

export async function tables({ user, example, tab }) {
  const { linked: of } = example
  const first = () => tab.text('tbody td a.first')
  const step = async (label, expected) => {
    await tab.click('button', label)
    await tab.page.waitForFunction((text) => document.querySelector('tbody td a.first')?.innerText === text, {}, expected)
      .catch(async () => assert.equal(await first(), expected, label))
  }
  await check(`${user.username}: pages go by cursor, with totals`, async () => {
    await tab.go(`data/${of.collection}?sort=${of.label}&filter=${of.label}=like=R-%25`)
    await tab.says(`${MANY} rows`, '.pages')
    assert.equal(await first(), 'R-00')
    await step('Next page', 'R-25')
    await step('Next page', 'R-50')
    await step('Page before', 'R-25')
    await step('Last page', `R-${MANY - 25}`)
    await step('First page', 'R-00')
    assert.match(await tab.page.url(), /filter=/, 'what is looked at is in the address')
  })
  await check(`${user.username}: columns are sorted and chosen`, async () => {
    await tab.go(`data/${of.collection}`)
    await tab.click('button', of.sort)
    await tab.see('th[aria-sort=ascending]')
    await tab.click('button', `${of.sort} ↑`)
    await tab.see('th[aria-sort=descending]')
    await tab.page.locator('summary ::-p-text(Columns)').click()
    // once: a locator would try again on the page that is drawn anew
    assert.ok(!(await tab.text('thead')).includes(of.column))
    await (await tab.see(`::-p-aria([name="${of.column}"][role="checkbox"])`)).click()
    await tab.says(of.column, 'thead')
    await tab.see('details[open] input:focus')
    await tab.page.keyboard.press('Escape')
    await tab.page.waitForFunction(() => !document.querySelector('details.menu[open]'))
  })
  await check(`${user.username}: a filter is built, and shown as RSQL`, async () => {
    const [field, value] = of.enum
    await tab.go(`data/${of.collection}`)
    await tab.click('button', 'Filter')
    await tab.choose('[aria-label=Field]', field)
    await tab.choose('[aria-label="Value of Status"]', value)
    assert.equal(await tab.page.$eval('.panel textarea', (node) => node.value), `${field}==${value}`)
    await tab.click('button', 'Apply')
    await tab.says(`${field}==${value}`, 'code.filter')
    assert.deepEqual([...new Set(await tab.texts('td .chip'))], [value])
    await tab.go(`data/${of.collection}?filter=nonsense%3D%3D1`)
    await tab.says('there is no attribute', '[role=alert]')
    await tab.click('link', 'Show all')
    await tab.see('table')
    await tab.go(`data/${of.collection}?filter=${of.label}==nobody`)
    await tab.says('Nothing matches', '.empty')
  })
}

/** What needs no user: once is enough. */
export async function builder({ tab, example }) {
  const { linked: of } = example
  await check('what the builder reads it writes again, or leaves as text', async () => {
    const again = (texts) => tab.page.evaluate(async (all) => {
      const { read, write } = await import('/console/rsql.js')
      return all.map((text) => { const got = read(text); return got && write(got.conditions, got.join) })
    }, texts)
    const same = ['status==DRAFT', "name=='O\\'Hara; & (sons)'", 'total=ge=12.50;total=lt=20',
      'status=in=(DRAFT,SENT),dueOn=isnull=true', "customer.city=ilike='%a b%'", "name=ilike='50\\\\%_%'", "name=='or'",
      "name=in=('a b',c)", 'customer.id==01980000-0000-7000-8000-000000000000', 'issuedAt=ge=2026-01-31T12:00:00Z']
    assert.deepEqual(await again(same), same)
    const others = ["name=in=('a,b',c)", 'name=ilike=exactly', '(a==1;b==2),c==3', 'a==1;b==2,c==3', 'a==1;', 'a==']
    assert.deepEqual(await again(others), others.map(() => null))
  })
  await check('a reference is asked for by what it is called', async () => {
    await tab.go(`data/${of.collection}`)
    await tab.click('button', 'Filter')
    await tab.choose('[aria-label=Field]', `${of.reference}.id`)
    await tab.pick('.condition [role=combobox]', of.reference === 'lead' ? 'ann' : '<img')
    assert.match(await tab.page.$eval('.panel textarea', (node) => node.value), new RegExp(`^${of.reference}\\.id==[-0-9a-f]{36}$`))
    await tab.click('button', 'Apply')
    await tab.see('table')
  })
}

/** Rows go out as CSV and JSON, and come in again. */
export async function files({ user, example, tab, token }) {
  const { plain } = example
  const folder = mkdtempSync(join(tmpdir(), 'console-'))
  const send = async (name, text) => {
    const file = join(folder, name)
    writeFileSync(file, text)
    await tab.click('button', 'Import')
    await (await tab.see('input[type=file]')).uploadFile(file)
  }
  const bring = () => tab.page.locator('dialog button.primary').click()
  const close = async () => { await tab.click('button', 'Close'); await tab.gone('dialog') }
  const count = async () => (await api('GET', `/api/v1/${plain.collection}?page[size]=1`, { token })).meta.pagination.totalRecords
  await check(`${user.username}: rows go out as CSV and JSON`, async () => {
    const saved = await tab.savesTo(folder)
    await tab.go(`data/${plain.collection}`)
    await tab.click('button', 'Export')
    await tab.click('button', 'As CSV')
    await tab.says('saved')
    const csv = await saved(`${plain.collection}.csv`)
    assert.match(csv, new RegExp(`^"id","${plain.label}",`))
    assert.ok(csv.includes(SCRIPT.slice(0, 20).replaceAll('"', '""')), 'quoted as CSV is')
    await tab.click('button', 'Export')
    await tab.click('button', 'As JSON')
    assert.ok(JSON.parse(await saved(`${plain.collection}.json`)).length >= 1)
  })
  if (!example.writers.has(user)) return
  await check(`${user.username}: rows come in`, async () => {
    const before = await count()
    await tab.go(`data/${plain.collection}?filter=${encodeURIComponent(`${plain.label}=like='%& ${user.username}'`)}`)
    await tab.says('Nothing matches', '.empty')
    await send('<img src=x onerror="window.struck=1">.csv', plain.csv.join('\r\n').replaceAll('{who}', user.username))
    await tab.says(`2 rows with ${plain.label}`, 'dialog')
    await bring()
    await tab.says('2 rows imported')
    await tab.says(`Nine, & ${user.username}`, 'td')
    assert.equal(await count(), before + 2)
  })
  await check(`${user.username}: many rows are brought with progress, and read again`, async () => {
    const before = await count()
    const names = Array.from({ length: 250 }, (none, i) => `N${i} ${user.username}`)
    await tab.go(`data/${plain.collection}`)
    await tab.page.evaluate(() => {
      globalThis.steps = []
      new MutationObserver(() => globalThis.steps.push(document.querySelector('dialog .progress')?.innerText ?? ''))
        .observe(document.body, { childList: true, subtree: true, characterData: true })
    })
    await send('many.csv', [plain.label, ...names].join('\n'))
    await bring()
    await tab.says('250 rows imported')
    assert.equal(await count(), before + 250)
    await tab.click('button', 'Export')
    await tab.click('button', 'As JSON')
    await tab.says(`${(before + 250).toLocaleString('en-US')} rows saved`)
    const steps = (await tab.page.evaluate(() => globalThis.steps)).map((text) => text.trim())
    for (const step of ['100 of 250', '200 of 250', `100 of ${before + 250}`]) assert.ok(steps.includes(step), `${step}: ${[...new Set(steps)]}`)
  })
  await check(`${user.username}: what is wrong with a file is told`, async () => {
    const before = await count()
    await tab.go(`data/${plain.collection}`)
    await send('in.csv', `${plain.label},${plain.fault},nobodys\r\nEleven,${plain.faulty},1\r\n`)
    await tab.says('Left out, as they cannot be set: nobodys.', 'dialog')
    await bring()
    await tab.says(`Row 1, ${plain.fault}`, 'dialog')
    await close()
    for (const [text, said] of [['', 'no rows'], [`${plain.label}\r\n"open`, 'not closed'], [`${plain.label}\r\na,b`, 'more values'],
      ['nobodys\r\n1', 'None of its names'], ['[{', 'cannot be read']]) {
      await send('in.csv', text)
      await tab.says(said, 'dialog')
      await close()
    }
    assert.equal(await count(), before, 'nothing is done then')
  })
}
