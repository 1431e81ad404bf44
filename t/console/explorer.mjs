// The explorer: every operation of the description, sent and told for curl.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { SCRIPT, check } from './browser.mjs'

const VERBS = ['get', 'post', 'put', 'patch', 'delete']

const operationsOf = ({ paths }) => Object.entries(paths).flatMap(([path, item]) =>
  VERBS.filter((verb) => item[verb]).map((verb) => ({ path, verb, id: item[verb].operationId, ...item[verb] })))

/** The status that a command of curl gets, run by a shell as somebody would. */
const run = (command, token) => execFileSync('sh', ['-c', `${command} -o /dev/null -w '%{http_code}'`],
  { env: { ...process.env, TOKEN: token }, encoding: 'utf8' })

const command = (tab) => tab.page.$eval('pre.command', (node) => node.textContent)

export async function explorer({ user, tab, token, description, example, users: { editor } }) {
  const all = operationsOf(description)
  await check(`${user.username}: each of the ${all.length} operations is there, with its curl`, async () => {
    await tab.go('explorer')
    const listed = await tab.page.$$eval('.operations a', (nodes) => nodes.map((node) => node.getAttribute('href')))
    assert.deepEqual(listed.toSorted(), all.map(({ id }) => `#/explorer/${id}`).sort())
    // once is enough for what is the same for all
    for (const { id, verb, path, security } of user === editor ? all : []) {
      await tab.go(`explorer/${id}`)
      const said = await command(tab)
      assert.ok(said.startsWith(`curl -gsS -X ${verb.toUpperCase()} '`), id)
      assert.ok(said.includes(path), `${id}: ${said}`)
      assert.equal(said.includes('Bearer $TOKEN'), security?.length !== 0, `${id}: a credential where one is needed`)
    }
  })
  await check(`${user.username}: what reads is sent, and curl gets the same`, async () => {
    for (const { id, path } of all.filter(({ verb, path: at }) => verb === 'get' && !at.includes('{'))) {
      await tab.go(`explorer/${id}`)
      await tab.click('button', 'Send')
      const status = await (await tab.see('.detail .chip')).evaluate((node) => node.innerText)
      assert.equal(run(await command(tab), token), status, path)
    }
  })
  await check(`${user.username}: parameters and bodies survive a shell`, async () => {
    const { collection, label } = example.plain
    const list = all.find(({ path, verb }) => verb === 'get' && path === `/api/v1/${collection}`)
    await tab.go(`explorer/${list.id}`)
    await tab.fill('filter', `${label}=='it\\'s $HOME "&" \`x\` %41'`)
    await tab.fill('fields', `[${collection.toLowerCase()}]=${label}`)
    await tab.click('button', 'Send')
    await tab.says('200', '.chip')
    await tab.says('"data": []', 'pre.answer')
    assert.equal(run(await command(tab), token), '200')
    const one = all.find(({ path, verb }) => verb === 'get' && path === `/api/v1/${collection}/{id}`)
    await tab.go(`explorer/${one.id}`)
    await tab.click('button', 'Send')
    await tab.says('The address needs this', '.fault')
    await tab.fill('id', `it's <b> "$HOME"`)
    await tab.click('button', 'Send')
    await tab.says('404', '.chip')
    assert.equal(run(await command(tab), token), '404')
    await tab.go('explorer/updateMe')
    await tab.fill('body', `{"profile": {"note": ${JSON.stringify(SCRIPT)}, "quote": "it's $HOME"}}`)
    await tab.click('button', 'Send')
    await tab.see('.detail .chip')
    assert.match(await command(tab), /--data-binary '\{"profile"/)
    assert.doesNotMatch(await tab.text('body'), /eyJ/, 'no token is shown')
  })
}
