package search

import "strings"

// meanings has, for a stem, those of words that commonly mean the same where
// programs are spoken of.
var meanings = grouped(`
	access permission permit
	account user
	add append attach create insert
	address street
	agent assistant
	alert notification warning
	answer reply respond
	apartment accommodation flat hotel listing rental
	appointment event meeting
	approve review
	archive compress gzip zip
	article paper
	assign delegate
	author blame wrote
	begin init initialize start
	big size space
	branch fork
	browser chrome web
	bug issue problem ticket
	build ci pipeline
	cancel abort stop end
	change edit modify patch replace update
	channel room
	chart diagram graph plot
	chat message
	check validate verify
	choose option pick select
	cleanup clean purge
	click press push tap
	clip movie video
	clone copy duplicate
	close complete done finish resolve
	cloud hosting
	cluster k8s kubernetes
	color colour
	column field
	command shell
	comment note remark
	compare diff difference
	contact person people user member colleague
	coordinate latitude longitude
	crash error exception failure bug
	create make new
	credential password secret token
	current now
	database db
	data dataset
	deploy install release
	delete destroy discard drop erase forget remove
	describe detail explain info
	directory folder
	display read show view
	distance far
	doc documentation manual
	document file
	download fetch
	draw generate render
	elevation altitude height
	email inbox mail
	environment env
	execute evaluate run
	fetch get load retrieve
	field property
	find locate search
	find get lookup
	forecast rain temperature weather
	form input
	get list show
	git commit
	google search web
	headline news
	heap memory
	hierarchy tree
	history log
	image photo picture
	internet online web
	invite add
	issue task ticket
	javascript js
	join merge combine union
	key shortcut
	label tag
	lib library package
	line row
	link url
	list enumerate
	list which
	log output trace
	mail message send
	metadata info
	money price cost
	mongo mongodb
	move rename
	mr mergerequest
	open navigate visit
	open new create
	organisation organization team workspace
	page site website
	place poi restaurant
	performance slow speed
	popular trending top
	postgres postgresql sql
	post publish send
	pr pullrequest
	project repo repository
	query search
	question ask
	random generate
	record row document
	register signup
	remember store save
	report bug create
	reset revert rollback undo
	route direction
	save store write
	schedule later
	schema structure
	scrape extract crawl
	send share forward
	sheet spreadsheet workbook xlsx excel
	start launch trigger
	status state
	string text
	subscribe watch monitor
	sum total add
	summary overview
	switch checkout change
	table spreadsheet
	task todo reminder
	team group
	time date
	transcript subtitle
	travel drive walk
	upload push
	user profile
	value number
	wait hold
`)

// grouped reads lines of words that mean the same; a word may be in several.
func grouped(lines string) map[string][]string {
	of := map[string][]string{}
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		for i, w := range words {
			words[i] = string(stem([]byte(w)))
		}
		for _, w := range words {
			for _, other := range words {
				if other != w {
					of[w] = append(of[w], other)
				}
			}
		}
	}
	return of
}
